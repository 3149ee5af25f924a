"""Steps of a series of medians: where its level changes, and stays. `ce table --steps` has the same rule.

The series is cut into segments of at least three values, with the least sum of distances to their medians and
a price for each cut. So a single value that is far away makes no step. The price grows with the noise, which
is found from neighbours, and with how long it lasts: a host that wanders has no steps. Steps of less than 2 %
are left out, and ones where a line through both segments is as near to the values as their two levels.
"""

from heapq import heappush, heappushpop
from math import exp, log, sqrt
from statistics import mean, median

LEAST_SERIES, LONGEST_SERIES, LEAST_SEGMENT, LEAST_STEP = 8, 3000, 3, 0.02
LEAST_MEMORY, MOST_MEMORY, FAR, SLOPE = 3, 0.9, 4.5, 0.97


def steps(values):
    """Returns for each step the number of its first value, and the medians of the levels before and after."""
    skipped = max(0, len(values) - LONGEST_SERIES)
    values = values[skipped:]
    if len(values) < LEAST_SERIES:
        return []
    relative = all(value > 0 for value in values)
    heights = [log(value) for value in values] if relative else values
    noise = noise_of(heights)
    if noise == 0:
        return []
    price = 3 * noise * log(len(heights))
    ends = [0, *cuts(heights, price), len(heights)]
    memory = memory_of(heights, ends)
    if memory > LEAST_MEMORY / sqrt(len(heights)):
        memory = min(memory, MOST_MEMORY)
        ends = [0, *cuts(heights, price * (1 + memory) / (1 - memory)), len(heights)]
    while len(ends) > 2:
        levels = [median(heights[a:b]) for a, b in zip(ends, ends[1:])]
        sizes = [abs(b - a) - (log(1 + LEAST_STEP) if relative else LEAST_STEP * abs(a))
                 for a, b in zip(levels, levels[1:])]
        smallest = min(range(len(sizes)), key=sizes.__getitem__)
        if sizes[smallest] >= 0:
            break
        del ends[smallest + 1]
    levels = [median(values[a:b]) for a, b in zip(ends, ends[1:])]
    found = zip(zip(ends, ends[1:], ends[2:]), zip(levels, levels[1:]))
    return [(skipped + at, *around) for (begin, at, end), around in found
            if not is_slope(heights[begin:end], at - begin)]


def distance_to_median(heights):
    middle = median(heights)
    return sum(abs(height - middle) for height in heights)


def memory_of(heights, ends):
    """The correlation of neighbours within segments, without their levels. Values that are far away count less."""
    segments = []
    for begin, end in zip(ends, ends[1:]):
        level = median(heights[begin:end])
        segments.append([height - level for height in heights[begin:end]])
    most = FAR * median(abs(height) for segment in segments for height in segment)
    segments = [[min(max(height, -most), most) for height in segment] for segment in segments]
    squares = sum(height * height for segment in segments for height in segment)
    products = sum(a * b for segment in segments for a, b in zip(segment, segment[1:]))
    return products / squares if squares else 0.0


def is_slope(heights, second):
    """Whether a line through the medians of the first and the last third is as near as the levels of both segments."""
    third = max(len(heights) // 3, 1)
    slope = (median(heights[-third:]) - median(heights[:third])) / (len(heights) - third)
    left = [height - slope * at for at, height in enumerate(heights)]
    levels = distance_to_median(heights[:second]) + distance_to_median(heights[second:])
    return distance_to_median(left) <= SLOPE * levels


def noise_of(heights):
    """The standard deviation of a value, from neighbours or from values up to five further, if these differ more."""
    lags = range(1, min(max(len(heights) // 20, 1), 5) + 1)
    noise = max(median(abs(b - a) for a, b in zip(heights, heights[lag:])) for lag in lags) / 0.954
    return noise or mean(abs(b - a) for a, b in zip(heights, heights[1:])) / 1.128


def cuts(heights, price):
    """Returns the cuts with the least cost."""
    # The least cost of the values before each number, and the last cut of these.
    best = [(-price, 0)] + [(float('inf'), 0)] * len(heights)
    for end in range(LEAST_SEGMENT, len(heights) + 1):
        # The halves of a segment, which ends here and grows to the left. Its cost is the difference of their sums.
        low, high, cost = [], [], 0.0
        for begin in range(end - 1, -1, -1):
            value = heights[begin]
            if len(low) == len(high):
                moved = heappushpop(high, value)
                heappush(low, -moved)
                cost += value - 2 * moved
                middle = -low[0]
            else:
                moved = -heappushpop(low, -value)
                heappush(high, moved)
                cost += 2 * moved - value
                middle = 0.0
            total = best[begin][0] + price + cost + middle
            if end - begin >= LEAST_SEGMENT and total < best[end][0]:
                best[end] = (total, begin)
    found, at = [], best[len(heights)][1]
    while at > 0:
        found.insert(0, at)
        at = best[at][1]
    return found
