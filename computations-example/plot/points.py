"""Points: what the plots show of a table. A point is a group of rows at one x.

The table is raw, with a row for each measurement, or summarised, with a row for each point. It is summarised
if it has the columns Y_ci95_low and Y_ci95_high beside the column Y. The points of a raw table are medians.

Computations that need this file have copies of it, which are equal.
"""

from dataclasses import dataclass, field

import samples
import tables
from tables import Number, Problem, quote

# More groups cannot be told apart by colour, line and mark.
MOST_GROUPS = 42


@dataclass
class Column:
    """What an input says of an axis: the name of a column, then lines `label: TEXT` and `scale: log`."""

    name: str
    label: str
    scale: str = 'auto'

    @classmethod
    def read(cls, path, what):
        name, *lines = tables.read_text(path, what).split('\n')
        if name == '':
            raise Problem(f'{what} is empty; it names a column')
        column = cls(name, name)
        for line in filter(None, lines):
            key, colon, value = line.partition(':')
            if not colon or key not in ('label', 'scale'):
                raise Problem(f'{what} has the line {quote(line)}; expected "label: TEXT" or "scale: SCALE"')
            setattr(column, key, value.strip())
        if column.scale not in ('auto', 'linear', 'log'):
            raise Problem(f'{what} has the scale {quote(column.scale)}; expected auto, linear or log')
        return column


@dataclass
class Point:
    x: object
    values: list = field(default_factory=list)
    y: float = None
    low: float = None
    high: float = None
    failed: int = 0


@dataclass
class Group:
    label: str
    points: dict = field(default_factory=dict)

    def shown(self):
        """The points that have a value."""
        return [point for point in self.points.values() if point.y is not None]


class Points:
    """The groups of a table by first appearance, and `notes`: what the reader of a picture must know."""

    def __init__(self, table, x, y, by):
        for column, what in [(x.name, 'x'), (y.name, 'y'), *((name, 'group') for name in by)]:
            table.require(column, what)
        table.require_numbers(y.name)
        self.table, self.x, self.y, self.by = table, x, y, by
        self.ends = [y.name + end for end in ('_ci95_low', '_ci95_high')]
        self.summarised = all(end in table.columns for end in self.ends)
        self.notes, self.groups = [], []
        self._read()
        if len(self.groups) > MOST_GROUPS:
            raise Problem(f'{" ".join(by)} makes {len(self.groups)} groups; at most {MOST_GROUPS} can be told apart')
        if not self.summarised:
            self._summarise()
        else:
            self._note_intervals()

    def _note_intervals(self):
        bars = [point.low is not None for group in self.groups for point in group.shown()]
        if any(bars):
            self.notes.insert(0, f'Bars: 95 % confidence intervals, {self.ends[0]} to {self.ends[1]}.')
        if not all(bars):
            self.notes.insert(1, 'Points without bars: too few values for an interval.')

    def _read(self):
        groups, without_x = {}, 0
        for end in self.ends if self.summarised else []:
            self.table.require_numbers(end)
        for row, line in zip(self.table.rows, self.table.lines):
            if row.get(self.x.name) is None:
                without_x += 1
                continue
            group = groups.setdefault(tables.key(row, self.by), Group(self._label(row)))
            point = group.points.setdefault(tables.key(row, [self.x.name]), Point(row[self.x.name]))
            self._add(point, row, line)
        self.groups = list(groups.values())
        failed = sum(point.failed for group in self.groups for point in group.points.values())
        self._note(failed, 'without a value')
        self._note(without_x, f'without {self.x.name}')

    def _note(self, count, what):
        if count:
            self.notes.append(f'1 row {what} is left out.' if count == 1 else f'{count} rows {what} are left out.')

    def _add(self, point, row, line):
        value = tables.measured(row, self.y.name)
        if value is None:
            point.failed += 1
            return
        if self.summarised and point.values:
            raise Problem(f'line {line} of the table has the {self.x.name} and the group of an earlier one; '
                          'group must name all columns by which the table was summarised')
        point.values.append(float(value))
        if self.summarised:
            low, high = (row.get(end) for end in self.ends)
            point.y, point.low, point.high = value, low, high if low is not None else None
            point.low = low if high is not None else None

    def _label(self, row):
        values = [text_of(row.get(name)) for name in self.by]
        if len(values) == 1:
            return values[0]
        return ', '.join(f'{name} {value}' for name, value in zip(self.by, values))

    def _summarise(self):
        """Gives points their medians and bars: all of them get bars of one kind."""
        points = [point for group in self.groups for point in group.points.values() if point.values]
        several = [len(point.values) for point in points if len(point.values) > 1]
        intervals = bool(several) and min(several) >= 6
        for point in points:
            point.y = samples.median(point.values)
            if len(point.values) > 1:
                ends = samples.median_interval(point.values) if intervals else None
                point.low, point.high = ends or (min(point.values), max(point.values))
        if several:
            sizes = str(several[0]) if min(several) == max(several) else f'{min(several)} to {max(several)}'
            what = '95 % confidence intervals of the median' if intervals else 'from smallest to largest value'
            self.notes.insert(0, f'Points: medians of {sizes} values. Bars: {what}.')

    def xs(self):
        """All x by first appearance."""
        found = {key: point.x for group in self.groups for key, point in group.points.items()}
        order = dict.fromkeys(tables.key(row, [self.x.name]) for row in self.table.rows)
        return [found[key] for key in order if key in found]


def text_of(value):
    """A value as the reader of a picture sees it."""
    if isinstance(value, Number):
        return value.text
    return {None: 'null', True: 'true', False: 'false', '': '(empty)'}.get(value, value)
