"""A point for each row, and error bars. At a text the groups are side by side.

Rows of a raw table are small circles. Where several have the same X and GROUP, the mark of the group is at their
median.
"""

import figures


def draw(points, x, y):
    shown = [point for group in points.groups for point in group.shown()]
    ys = [value for point in shown for value in (*point.values, point.low, point.high) if value is not None]
    x_axis, y_axis = figures.Axis(x, points.xs()), figures.Axis(y, ys, measured=True)
    several = any(len(point.values) > 1 for point in shown)
    if several:
        points.notes.insert(0, 'Small circles: rows.')
    figure = figures.Figure(points, x_axis, y_axis, lines=False)
    for at, group in enumerate(points.groups):
        beside = (at + 0.5) / len(points.groups) * 0.6 - 0.3 if x_axis.texts is not None else 0.0
        rows = [(x_axis.place(point.x) + beside, point) for point in group.shown()]
        style = f'lc rgb "{figures.colour(at)}"'
        circles = [(place, value) for place, p in rows if len(p.values) > 1 for value in p.values]
        figure.add(group, circles, f'using 1:2 with points pt 6 ps 0.45 lw 0.8 {style}')
        bars = [(place, y_axis.clip(p.low), y_axis.clip(p.high)) for place, p in rows if p.low is not None]
        figure.add_bars(group, bars, style)
        marks = [(place, p.y) for place, p in rows]
        figure.add(group, marks, f'using 1:2 with points pt {figures.mark(at)} ps 0.7 {style}')
    return figure
