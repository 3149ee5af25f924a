"""How a measurement changes over the rows of a table, such as the commits of a history.

X is any column: each of its values has a place, in the order of their first rows.

A cross at the bottom marks where
rows have failed or have no value. A ring with a percentage marks a change of
the median beyond the noise: a point that differs from the median of the up to
five points before it, since the last change, by more than four times the noise.
Where rows were not measured repeatedly, so must the median of it and the two
points after it: then a single outlier is none.
The noise is estimated for each group, relative to the values if all of them are
positive: so what became slower does not seem to be noisier. It is the larger one of
  - the median of the points' standard errors, if rows were measured repeatedly,
  - the median of the steps between neighbours divided by 0.954, if there are
    five points or more: the standard deviation of a point, if steps are normal
    and most of them are no change.
Where neither is to be had, nothing is marked.
"""

import re
from math import exp, log
from statistics import median

import figures
from points import text_of

WINDOW, HOLD, LIMIT = 5, 3, 4.0


def height(point, relative):
    """The value of a point, on a scale where noise is the same everywhere."""
    return log(point.y) if relative else point.y


def noise_of(group, summarised, relative):
    """The standard deviation of a point that comes of noise, or None if it cannot be estimated."""
    shown = group.shown()
    errors = [(point, point.error(summarised)) for point in shown]
    errors = [error / point.y if relative else error for point, error in errors if error is not None]
    estimates = [median(errors)] if errors else []
    if len(shown) >= 5:
        # The median of the absolute difference of two normal values is 0.954 standard deviations.
        steps = [abs(height(b, relative) - height(a, relative)) for a, b in zip(shown, shown[1:])]
        estimates.append(median(steps) / 0.954)
    return max(estimates, default=None)


def changes(points, noise, relative):
    """Returns the points that differ from those before, and what these were."""
    found, level = [], []
    for at, point in enumerate(points):
        here = height(point, relative)
        before = median(level[-WINDOW:]) if level else here
        held = len(point.values) > 1 or point.low is not None
        after = [here] if held else [height(p, relative) for p in points[at:at + HOLD]]
        if min(abs(here - before), abs(median(after) - before)) > LIMIT * noise:
            found.append((point, exp(before) if relative else before))
            level = []
        level.append(here)
    return found


def change_text(value, before):
    if before == 0:
        return f'{value:+.3g}'.replace('-', '−')
    percent = (value - before) / abs(before) * 100
    digits = '.3g' if abs(percent) < 1000 else '.0f'
    return f'{percent:+{digits}} %'.replace('-', '−')


def notes_of(marked, unknown, failed):
    notes = []
    if marked:
        notes.append('Rings: changes of the median beyond four times the noise.')
    if unknown:
        notes.append('Changes are not marked where the noise is unknown.')
    if failed:
        notes.append('Crosses at the bottom: rows failed or have no value.')
    return notes


def short(value):
    """Commit ids by their first ten digits."""
    return value[:10] if re.fullmatch('[0-9a-f]{40}|[0-9a-f]{64}', value) else value


def draw(points, x, y):
    shown = [point for group in points.groups for point in group.shown()]
    ys = [end for point in shown for end in (point.y, point.low, point.high) if end is not None]
    x_axis, y_axis = figures.Axis(x, points.xs(), texts=True), figures.Axis(y, ys, measured=True)
    x_axis.ticks = [(at, figures.visible(short(text_of(value)), 24)) for (_, value), at in x_axis.texts.items()]
    failed = any(point.failed for group in points.groups for point in group.points.values())
    bottom = y_axis.extend(0.06) if failed else None
    noises, marked = [], []
    for group in points.groups:
        relative = all(point.y > 0 for point in group.shown())
        noises.append(noise_of(group, points.summarised, relative))
        marked.append([] if noises[-1] is None else changes(group.shown(), noises[-1], relative))
    points.notes += notes_of(any(marked), None in noises and shown, failed)
    figure = figures.Figure(points, x_axis, y_axis)
    for at, group in enumerate(points.groups):
        add_group(figure, group, at, marked[at], bottom)
    return figure


def add_group(figure, group, at, marked, bottom):
    """Adds the line of a group, its marks and its crosses."""
    place, style = figure.x.place, f'lc rgb "{figures.colour(at)}"'
    bars = [(place(p.x), figure.y.clip(p.low), figure.y.clip(p.high)) for p in group.shown() if p.low is not None]
    figure.add_bars(group, bars, style)
    line = f'lw 1.4 dt {figures.dash(at)} pt {figures.mark(at)} ps 0.6 {style}'
    figure.add(group, [(place(p.x), p.y) for p in group.shown()], f'using 1:2 with linespoints {line}')
    figure.add(group, [(place(p.x), p.y) for p, _ in marked], 'using 1:2 with points pt 6 ps 1.5 lw 1.6 lc rgb "#000000"')
    for point, before in marked:
        # Left of the step is room, but for those at the left end.
        above = 0.9 if point.y > before else -0.9
        side = 'right offset -1.2,0' if place(point.x) > 0.15 * figure.x.high else f'center offset 0,{above}'
        figure.add_text(place(point.x), float(point.y), change_text(point.y, before), f'{side} front')
    crosses = [(place(p.x), bottom) for p in group.points.values() if p.failed]
    figure.add(group, crosses, f'using 1:2 with points pt 2 ps 0.8 lw 1.6 {style}')

