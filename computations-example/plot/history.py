"""How a measurement changes over the rows of a table, such as the commits of a history.

X is any column: each of its values has a place, in the order of their first rows.

A cross at the bottom marks where rows have failed or have no value. A ring with a percentage marks a step: a
point at which the level of the medians changes, and stays. Points in a row with the same several values rest
on the same measurements, as those of commits with the same sources do, and count once.
"""

import re

import figures
from points import text_of
from steps import LEAST_SERIES, steps


def measured(group):
    """The points with values of their own."""
    found = []
    for point in group.shown():
        if len(point.values) == 1 or not found or point.values != found[-1].values:
            found.append(point)
    return found


def marked_steps(group):
    """The points at which the level changes, and the levels before and after."""
    points = measured(group)
    found = steps([float(point.y) for point in points])
    return [(points[at], before, after) for at, before, after in found]


def change_text(value, before):
    if min(value, before) <= 0:
        return f'{value - before:+.3g}'.replace('-', '−')
    percent = (value - before) / before * 100
    digits = '.3g' if abs(percent) < 1000 else '.0f'
    return f'{percent:+{digits}} %'.replace('-', '−')


def notes_of(marked, short, failed):
    notes = []
    if marked:
        notes.append('Rings: steps, at which the level changes and stays.')
    if short:
        notes.append(f'Steps are not looked for in less than {LEAST_SERIES} measured points.')
    if failed:
        notes.append('Crosses at the bottom: rows failed or have no value.')
    return notes


def shortened(value):
    """Commit ids by their first ten digits."""
    return value[:10] if re.fullmatch('[0-9a-f]{40}|[0-9a-f]{64}', value) else value


def draw(points, x, y):
    shown = [point for group in points.groups for point in group.shown()]
    ys = [end for point in shown for end in (point.y, point.low, point.high) if end is not None]
    x_axis, y_axis = figures.Axis(x, points.xs(), texts=True), figures.Axis(y, ys, measured=True)
    x_axis.ticks = [(at, figures.visible(shortened(text_of(value)), 24)) for (_, value), at in x_axis.texts.items()]
    failed = any(point.failed for group in points.groups for point in group.points.values())
    bottom = y_axis.extend(0.06) if failed else None
    marked = [marked_steps(group) for group in points.groups]
    short = any(len(measured(group)) < LEAST_SERIES for group in points.groups)
    points.notes += notes_of(any(marked), short, failed)
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
    figure.add(group, [(place(p.x), p.y) for p, _, _ in marked], 'using 1:2 with points pt 6 ps 1.5 lw 1.6 lc rgb "#000000"')
    for point, before, after in marked:
        # Left of the step is room, but for those at the left end.
        above = 0.9 if after > before else -0.9
        side = 'right offset -1.2,0' if place(point.x) > 0.15 * figure.x.high else f'center offset 0,{above}'
        figure.add_text(place(point.x), float(point.y), change_text(after, before), f'{side} front')
    crosses = [(place(p.x), bottom) for p in group.points.values() if p.failed]
    figure.add(group, crosses, f'using 1:2 with points pt 2 ps 0.8 lw 1.6 {style}')

