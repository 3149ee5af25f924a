"""A line for each group of rows, with error bars."""

import figures


def draw(points, x, y):
    shown = [point for group in points.groups for point in group.shown()]
    ys = [end for point in shown for end in (point.y, point.low, point.high) if end is not None]
    x_axis, y_axis = figures.Axis(x, points.xs()), figures.Axis(y, ys, measured=True)
    figure = figures.Figure(points, x_axis, y_axis)
    for at, group in enumerate(points.groups):
        rows = [(x_axis.place(point.x), point) for point in group.shown()]
        rows.sort(key=lambda row: row[0])
        bars = [(place, y_axis.clip(p.low), y_axis.clip(p.high)) for place, p in rows if p.low is not None]
        style = f'lc rgb "{figures.colour(at)}"'
        figure.add_bars(group, bars, style)
        line = f'lw 1.6 dt {figures.dash(at)} pt {figures.mark(at)} ps 0.7'
        figure.add(group, [(place, p.y) for place, p in rows], f'using 1:2 with linespoints {line} {style}')
    return figure
