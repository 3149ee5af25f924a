"""Samples: the median and the mean of repeated measurements, with 95 % confidence intervals.

The interval of the median is that of order statistics. It assumes only that the measurements are
independent and of one distribution, which need not be normal: times rarely are. It covers the median with a
probability of at least 95 %, and does not exist for fewer than 6 values. The interval of the mean is
Student's. It exists from 2 values on, and assumes that the mean is distributed normally.

Computations that need this file have copies of it, which are equal.
"""

import math
from decimal import Decimal
from functools import cache
from statistics import NormalDist

__all__ = ['mean_and_deviation', 'mean_interval', 'median', 'median_interval']

# Up to so many values the interval of the median is exact. Beyond it is of the normal distribution, and at most a
# rank wider at either end; so is t, which then has ten exact digits.
EXACT = 1000


def median(values):
    """Returns the median. Between two values it is their mean as decimal numbers: that of 0.1 and 0.2 is 0.15."""
    ordered, n = sorted(values), len(values)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    return low if low == high else float((Decimal(repr(low)) + Decimal(repr(high))) / 2)


@cache
def median_rank(n):
    """The largest rank k for which the values of rank k and n + 1 - k enclose the median, or 0."""
    if n > EXACT:
        return math.floor(n / 2 - NormalDist().inv_cdf(0.975) * math.sqrt(n) / 2)
    # The median is below the value of rank k with probability (C(n, 0) + ... + C(n, k - 1)) / 2^n.
    below, rank = 1, 0
    while 40 * below <= 2**n:
        rank += 1
        below += math.comb(n, rank)
    return rank


def median_interval(values):
    """Returns the ends of the 95 % confidence interval of the median, or None for fewer than 6 values."""
    rank = median_rank(len(values))
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


def mean_and_deviation(values):
    """Returns the mean and the standard deviation (divided by n - 1, None for one value)."""
    # Powers of two scale exactly, and keep squares of large values finite.
    scale = 2.0 ** min(math.frexp(max(abs(value) for value in values))[1], 1023)
    scaled, n = [value / scale for value in values], len(values)
    mean = math.fsum(scaled) / n
    if n == 1:
        return mean * scale, None
    squares = math.fsum((value - mean) ** 2 for value in scaled)
    return mean * scale, math.sqrt(squares / (n - 1)) * scale


def mean_interval(mean, deviation, n):
    """Returns the ends of Student's 95 % confidence interval of the mean, or None for one value."""
    if n < 2:
        return None
    half = student(n - 1) * deviation / math.sqrt(n)
    return mean - half, mean + half


@cache
def student(df):
    """The t between which and -t lie 95 % of Student's distribution."""
    if df > EXACT:
        z = NormalDist().inv_cdf(0.975)
        return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    low, high = 1.0, 16.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if share_within(middle, df) < 0.95 else (low, middle)
    return high


def share_within(t, df):
    """The share of Student's distribution between -t and t: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(df))
    term, total = (math.cos(angle) if df % 2 else 1.0), 0.0
    for i in range(3 if df % 2 else 2, df + 1, 2):
        total += term
        term *= (i - 1) / i * math.cos(angle) ** 2
    if df % 2:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
