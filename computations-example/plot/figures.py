"""Figures: axes, legend and notes of a plot, drawn as SVG by gnuplot.

All places, ticks and texts are decided here, and nothing by gnuplot: so a picture does not depend on the
locale, the fonts or the settings of a host. The colours are those of Okabe and Ito, which people who are
colour-blind can tell apart, and each group has a mark of its own, too.

Computations that need this file have copies of it, which are equal.
"""

import html
import math
import os
import re
import subprocess
import tempfile
import unicodedata

from points import text_of
from tables import Number, Problem, quote

COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00', '#000000']
MARKS = [7, 5, 9, 11, 13, 6, 4, 8, 10, 12]
DASHES = ['solid', '(14,6)', '(4,4)', '(14,5,3,5)', '(24,8)', '(2,7)']
GREY = '#555555'
WIDTH, PLOT_HEIGHT, LINE = 800, 380, 18
LETTER = 7.6  # the width of a letter of 13 pixels, on average
SLANT = 0.71  # how wide and how high a text at 45 degrees is, of its length
LONGEST = 88  # letters of a name in the legend


def visible(text, most=LONGEST):
    """A text of one line that XML can hold: other characters as JSON writes them, and the middle left out."""
    text = re.sub(r'[\ud800-\udfff\ufffe\uffff]', '\ufffd', text)
    text = re.sub(r'[\x00-\x1f\x7f-\x9f\u2028\u2029]', lambda match: escape(match[0]), text)
    if width_of(text, 1) > most:
        text = take(text, most * 2 // 3) + '…' + take(text[::-1], most // 3 - 1)[::-1]
    return text


def take(text, most):
    """The first letters of a text."""
    while width_of(text, 1) > most:
        text = text[:-1]
    return text


def escape(char):
    return {'\n': '\\n', '\t': '\\t', '\r': '\\r'}.get(char, f'\\u{ord(char):04x}')


def width_of(text, letter=LETTER):
    """About how many pixels a text is wide."""
    return letter * sum(2 if unicodedata.east_asian_width(char) in 'WF' else 1 for char in text)


def literal(text):
    """A text as gnuplot reads it between double quotes, where backquotes would run a command."""
    text = text.replace('\\', '\\\\').replace('"', '\\"')
    # An octal number takes all digits that follow, so these are written as such, too.
    return '"' + re.sub('`[0-7]*', lambda match: ''.join(f'\\{ord(char):03o}' for char in match[0]), text) + '"'


def is_plain(value):
    """Whether a number is easily read without a power of ten."""
    return value == 0 or 1e-3 <= abs(value) < 1e7


def exponent_of(value):
    return int(f'{value:.6e}'.partition('e')[2])


def number_text(value, exponent=None, digits=7):
    """A number for the reader: with a true minus sign, and a power of ten if it is large or small."""
    if exponent is None and not is_plain(value):
        exponent = exponent_of(value)
    if not exponent or value == 0:
        text = f'{value:.{max(digits, 7)}g}'
    else:
        power = str(exponent).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))
        mantissa = f'{value / 10.0**exponent:.{digits}g}'
        text = f'10{power}' if mantissa == '1' else f'{mantissa}×10{power}'
    return text.replace('-', '−')


class Axis:
    """A range, a scale and ticks. Texts are at 0, 1, 2, ...; numbers at their values.

    One of measured values begins at zero if that is near, and has ticks at round numbers. Others have
    ticks at their values if these are few and the scale is logarithmic.
    """

    def __init__(self, column, values, texts=False, measured=False):
        self.label, self.texts = visible(column.label), None
        numbers = [float(value) for value in values if isinstance(value, float)]
        if texts or len(numbers) < len(values):
            if column.scale != 'auto':
                raise Problem(f'column {quote(column.name)} is not drawn as numbers, so it has no scale')
            self._of_texts(values)
            return
        if not numbers:
            self.log, self.low, self.high, self.ticks = False, 0.0, 1.0, []
            return
        for value in numbers:
            if value != 0 and not 1e-100 < abs(value) < 1e100:
                raise Problem(f'column {quote(column.name)} has {value!r}, which is too large or too small to be drawn')
        self.log = column.scale == 'log' or column.scale == 'auto' and spans_decades(numbers)
        if self.log and min(numbers) <= 0:
            raise Problem(f'column {quote(column.name)} has values up to zero, which scale: log cannot show')
        if self.log:
            self._of_decades(sorted(set(numbers)), measured)
        else:
            self._linear(min(numbers), max(numbers), measured)

    def _of_texts(self, values):
        self.log, self.low, self.high = False, -0.6, len(values) - 0.4
        # True is equal to 1, and is another value.
        self.texts = {(type(value), value): float(at) for at, value in enumerate(values)}
        self.ticks = [(float(at), visible(text_of(value), 24)) for at, value in enumerate(values)]

    def _linear(self, low, high, measured):
        if low == high:
            low, high = (low - abs(low) / 10, high + abs(high) / 10) if low else (-1.0, 1.0)
        if measured and 0 <= low <= 0.4 * high:
            low = 0.0
        pad = (high / 2 - low / 2) * 0.1
        self.low, self.high = (low if measured and low == 0 else low - pad), high + pad
        self.ticks = linear_ticks(self.low, self.high)

    def _of_decades(self, distinct, measured):
        pad = max((distinct[-1] / distinct[0]) ** 0.05, 1.1)
        self.low, self.high = distinct[0] / pad, distinct[-1] * pad
        decades = math.log10(self.high / self.low)
        gaps = [math.log10(b / a) / decades for a, b in zip(distinct, distinct[1:])]
        if not measured and len(distinct) <= 9 and min(gaps, default=1) > 0.08:
            self.ticks = decade_ticks(distinct)
            return
        every, mantissas = max(1, math.ceil(decades / 9)), (1, 2, 5) if decades < 3.5 else (1,)
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        places = [float(f'{m}e{e}') for e in exponents if e % every == 0 for m in mantissas]
        self.ticks = decade_ticks([place for place in places if self.low <= place <= self.high])
        if len(self.ticks) < 3:
            self.ticks = [tick for tick in linear_ticks(self.low, self.high) if tick[0] > 0]

    def extend(self, share):
        """Makes room at the low end for marks; returns where they are."""
        if self.log:
            whole = self.high / self.low
            self.low /= whole**share
            return self.low * whole ** (share / 2)
        whole = self.high - self.low
        self.low -= whole * share
        return self.low + whole * share / 2

    def place(self, value):
        return self.texts[type(value), value] if self.texts is not None else float(value)

    def clip(self, value):
        return min(max(value, self.low), self.high)


def spans_decades(numbers):
    """Whether a logarithmic scale is meant: 1 to 100, or steps such as 1, 2, 4, 8."""
    low, high = min(numbers), max(numbers)
    if low <= 0:
        return False
    distinct = sorted(set(numbers))
    steps = [b / a for a, b in zip(distinct, distinct[1:])]
    are_equal = len(steps) >= 2 and min(steps) >= 1.5 and max(steps) / min(steps) < 1.5
    return high / low >= 50 or are_equal and high / low > 4


def decade_ticks(places):
    """Ticks of a logarithmic axis: all as powers of ten if one must be."""
    if all(is_plain(place) for place in places):
        return [(place, number_text(place)) for place in places]
    return [(place, number_text(place, exponent_of(place))) for place in places]


def linear_ticks(low, high):
    """Ticks at multiples of 1, 2 or 5 times a power of ten: five to ten of them."""
    wish = high / 5 - low / 5
    power = 10.0 ** math.floor(math.log10(wish))
    step = max(factor * power for factor in (1, 2, 5) if factor * power <= wish * 1.0001)
    largest = max(abs(low), abs(high))
    digits = exponent_of(largest) - exponent_of(step) + 1
    plain = 1e-3 <= largest < 1e6 or digits > 4 and 1 <= largest < 1e12
    exponent = 0 if plain else exponent_of(largest)
    places = [step * at for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [(place, number_text(place, exponent, digits)) for place in places]


class Figure:
    """A picture under construction: its axes, series, legend and notes, then its SVG."""

    def __init__(self, points, x, y, lines=True):
        self.title, self.x, self.y, self.lines, self.notes = title_of(points), x, y, lines, points.notes
        self.legend = [(visible(text), at) for text, at in legend_of(points)]
        self.data, self.plots, self.names, self.marks = [], [], [], []
        self._lay_out()

    def _lay_out(self):
        """Decides where everything is, in pixels from the top left corner."""
        longest = max((width_of(text) for text, _ in self.legend), default=0)
        beside = bool(self.legend) and longest <= 180 and len(self.legend) * LINE <= PLOT_HEIGHT
        self.left = 52 + max((width_of(text) for _, text in self.y.ticks), default=0)
        self.right = WIDTH - 20 - (longest + 50 if beside else 0)
        self.top, self.bottom = 18, 18 + PLOT_HEIGHT
        self._thin_ticks()
        height = max((width_of(text) * SLANT if self.slanted else 0 for _, text in self.x.ticks), default=0)
        at = self.label_at = self.bottom + (40 + height if self.slanted else 42)
        if beside:
            self.columns, self.legend_at = 1, (self.right + 14, self.top + 8)
        else:
            self.columns = max(1, int((WIDTH - 30) // (longest + 60)))
            self.legend_at = (20, at + 30)
            rows = math.ceil(len(self.legend) / self.columns)
            at += rows * LINE + (12 if rows else 0)
        self.column_width = longest + 60
        self.notes = [line for note in [' '.join(self.notes)] for line in wrap(visible(note, 1000), 120)]
        self.notes_at = at + 28
        self.height = round(self.notes_at + len(self.notes) * 16)

    def _thin_ticks(self):
        """Slants the texts at x where they would touch, and leaves out some where even that is not enough."""
        self.slanted = False
        if len(self.x.ticks) < 2:
            return
        room = (self.right - self.left) / len(self.x.ticks)
        if self.x.texts is None or max(width_of(text) for _, text in self.x.ticks) + 8 <= room:
            return
        self.slanted = True
        scale = (self.right - self.left) / (self.x.high - self.x.low)
        starts = ((place - self.x.low) * scale - width_of(text) * SLANT for place, text in self.x.ticks)
        self.left = max(self.left, 10 - min(starts))
        every = math.ceil(20 / room)
        last = len(self.x.ticks) - 1
        self.x.ticks = [tick for at, tick in enumerate(self.x.ticks) if (last - at) % every == 0]

    def add(self, group, rows, style):
        """Adds a series of a group: rows of numbers, and how gnuplot draws them."""
        if rows:
            name = f'$d{len(self.data)}'
            lines = '\n'.join(' '.join(repr(float(value)) for value in row) for row in rows)
            self.data.append(f'{name} << EOD\n{lines}\nEOD')
            self.plots.append(f'{name} {style}')
            self.names.append(visible(group.label))

    def add_bars(self, group, bars, style):
        """Adds error bars: rows of x, low and high."""
        self.add(group, bars, f'using 1:2:(0):($3-$2) with vectors heads size graph 0.005,90 lw 1.1 {style}')

    def add_text(self, x, y, text, style=''):
        """Adds a text at a place of the axes."""
        self.marks.append(f'set label {literal(visible(text))} at {x!r},{y!r} {style}')

    def _at(self, x, y):
        return f'screen {x / WIDTH:.6f},{1 - y / self.height:.6f}'

    def _text(self, text, x, y, style=''):
        return f'set label {literal(text)} at {self._at(x, y)} {style}'

    def _axis(self, name, axis, options=''):
        # The texts of ticks are formats, in which a percent sign is doubled. Those of labels are not.
        ticks = ', '.join(f'{literal(text.replace("%", "%%"))} {place!r}' for place, text in axis.ticks)
        return [
            f'set {name}range [{axis.low!r}:{axis.high!r}]',
            f'set logscale {name}' if axis.log else f'unset logscale {name}',
            f'set {name}tics nomirror out scale 0.5 {options} ({ticks})' if ticks else f'unset {name}tics',
        ]

    def _legend(self):
        x, y = self.legend_at
        for number, (text, at) in enumerate(self.legend):
            rows = math.ceil(len(self.legend) / self.columns)
            left, middle = x + self.column_width * (number // rows), y + LINE * (number % rows)
            if at is not None:
                style = f'lc rgb "{colour(at)}"'
                if self.lines:
                    line = f'{self._at(left, middle)} to {self._at(left + 30, middle)}'
                    yield f'set arrow from {line} nohead lw 1.6 {style} dt {dash(at)}'
                yield self._text('', left + 15, middle, f'point pt {mark(at)} ps 0.7 {style}')
            yield self._text(text, left + 36, middle, 'left')

    def script(self):
        """Returns what gnuplot is told."""
        sides = [('l', self.left / WIDTH), ('r', self.right / WIDTH)]
        sides += [('t', 1 - self.top / self.height), ('b', 1 - self.bottom / self.height)]
        lines = ['set encoding utf8', 'set decimalsign "."', 'unset key', 'set border 3 lc rgb "#555555"']
        lines.append(f'set terminal svg size {WIDTH},{self.height} fixed noenhanced font "sans-serif,13" '
                     'background rgb "white" linewidth 1 rounded')
        lines += [f'set {side}margin at screen {share:.6f}' for side, share in sides]
        lines += self._axis('x', self.x, 'rotate by 45 right' if self.slanted else 'norotate')
        lines += self._axis('y', self.y)
        lines.append('set grid ytics lc rgb "#dddddd" lt 1 lw 0.6')
        lines.append(self._text(self.x.label, (self.left + self.right) / 2, self.label_at, 'center'))
        lines.append(self._text(visible(self.y.label, 52), 16, (self.top + self.bottom) / 2, 'center rotate by 90'))
        lines += self._legend()
        style = f'left font "sans-serif,11" tc rgb "{GREY}"'
        lines += [self._text(note, 20, self.notes_at + 16 * at, style) for at, note in enumerate(self.notes)]
        lines += self.marks + self.data
        return '\n'.join([*lines, 'plot ' + ', '.join(self.plots or ['NaN'])]) + '\n'

    def write(self, path):
        """Draws the picture. What of gnuplot's output depends on its version is left out."""
        if not self.plots:
            middle = (self.left + self.right) / 2, (self.top + self.bottom) / 2
            self.marks.append(self._text('no values', *middle, f'center tc rgb "{GREY}"'))
        environment = {'PATH': os.environ.get('PATH', os.defpath), 'LC_ALL': 'C', 'TMPDIR': tempfile.gettempdir()}
        try:
            ran = subprocess.run(['gnuplot', '-d', '-'], input=self.script().encode(), env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except FileNotFoundError:
            raise Problem('there is no gnuplot; Debian has it as the package gnuplot-nox') from None
        svg = ran.stdout.decode(errors='replace')
        if ran.returncode or not svg.rstrip().endswith('</svg>'):
            lines = [line for line in ran.stderr.decode(errors='replace').splitlines() if line.strip(' ^')]
            raise Problem(f'gnuplot failed with status {ran.returncode}: {" ".join(lines[-1:])}')
        # gnuplot leaves > as it is, which XML allows but here.
        svg = svg.replace(']]>', ']]&gt;')
        svg = re.sub(r'\s*<desc>.*?</desc>', '', svg, flags=re.DOTALL)
        # Browsers show the title of what the mouse points at: the first one is of all, the others of the series.
        titles = [visible(self.title, 1000), *self.names]
        titles = (f'<title>{html.escape(title, quote=False)}</title>' for title in titles)
        svg = re.sub('<title>.*?</title>', lambda _: next(titles, ''), svg)
        with open(path, 'w', encoding='utf-8', newline='') as file:
            file.write(svg)


def wrap(text, most):
    """Breaks a text into lines at blanks."""
    lines = ['']
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append('')
        lines[-1] = f'{lines[-1]} {word}'.strip()
    return [line for line in lines if line]


def colour(at):
    return COLOURS[at % len(COLOURS)]


def mark(at):
    return MARKS[at % len(MARKS)]


def dash(at):
    return DASHES[at // len(COLOURS) % len(DASHES)]


def legend_of(points):
    """A heading with the names of the columns, then the groups; nothing for a single group without a name."""
    if not points.by or not points.groups:
        return []
    heading = [(', '.join(points.by) if len(points.by) == 1 else 'group', None)]
    return heading + [
        (group.label + ('' if group.shown() else ' (no values)'), at) for at, group in enumerate(points.groups)
    ]


def title_of(points):
    by = f' for each {", ".join(points.by)}' if points.by else ''
    return f'{points.y.label} by {points.x.label}{by}'
