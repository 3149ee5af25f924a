"""Tables: reads them, checks them, and says in one line what is wrong with one.

A table is NDJSON: one JSON object a line. A value is a number, a text, true, false or null. The columns
are the names that occur in any row; where a row lacks one, its value is null. A table may be empty, and
then nothing is known of its columns. A row whose `status` is there and is not `ok` has failed.

Computations that need this file have copies of it, which are equal.
"""

import json
import math
import re
import sys
from decimal import Decimal


class Problem(Exception):
    """What is wrong with the input, as one line for the user."""


class Number(float):
    """A finite number that remembers how it was written, so that it can be written again."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        if not math.isfinite(self):
            raise Problem(f'the number {text[:40]} is too large')
        return self


def run(name, arguments, main):
    """Calls main with the arguments of the program; a problem ends it with status 1 and one line."""
    try:
        if len(sys.argv) - 1 != len(arguments.split()):
            raise Problem(f'expected {arguments}')
        main(*sys.argv[1:])
    except Problem as problem:
        sys.stderr.reconfigure(encoding='utf-8', errors='backslashreplace')
        sys.exit(f'{name}: {problem}')


def shortened(text):
    return text if len(text) <= 40 else text[:39] + '…'


def quote(text):
    """A name of the user in a message: always one line."""
    return json.dumps(text, ensure_ascii=False)


def read_text(path, what):
    """Returns the text of an input without one final newline."""
    try:
        with open(path, encoding='utf-8', newline='') as file:
            return file.read().removesuffix('\n')
    except UnicodeDecodeError:
        raise Problem(f'{what} is not text in UTF-8') from None


def read_line(path, what):
    """Returns an input that is one line."""
    text = read_text(path, what)
    if '\n' in text or '\r' in text:
        raise Problem(f'{what} is not one line')
    return text


def read_names(path, what):
    """Returns names of columns with blanks, commas or newlines between them; there may be none."""
    names = [name for name in re.split(r'[\s,]+', read_text(path, what)) if name]
    for name in names:
        if names.count(name) > 1:
            raise Problem(f'{what} has {quote(name)} twice')
    return names


class Table:
    """Rows as dictionaries, each with its line in the file, and the columns by first appearance."""

    def __init__(self, path, what='the table'):
        self.what, self.rows, self.lines = what, [], []
        for number, line in enumerate(read_text(path, what).split('\n'), 1):
            if line.strip():
                self.rows.append(self._row(number, line))
                self.lines.append(number)
        self.columns = list(dict.fromkeys(name for row in self.rows for name in row))

    def _row(self, number, line):
        where = f'{self.what}, line {number}'
        try:
            row = json.loads(
                line, object_pairs_hook=unique, parse_int=Number, parse_float=Number, parse_constant=refuse
            )
        except Problem as problem:
            raise Problem(f'{where}: {problem}') from None
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise Problem(f'{where} is not a JSON object: {quote(shortened(line))}')
        for name, value in row.items():
            if isinstance(value, (dict, list)):
                kind = 'an object' if isinstance(value, dict) else 'an array'
                raise Problem(f'{where}: column {quote(name)} is {kind}, not a number or a text')
        return row

    def require(self, name, input):
        """Refuses a column that no row has; an empty table has every column."""
        if self.rows and name not in self.columns:
            have = ', '.join(quote(column) for column in self.columns) or 'none'
            raise Problem(f'{self.what} has no column {quote(name)}, which {input} names; it has {have}')

    def is_numeric(self, name):
        """Whether all values of a column, as far as there are any, are numbers."""
        return all(isinstance(row.get(name), (Number, type(None))) for row in self.rows)

    def require_numbers(self, name):
        for row, line in zip(self.rows, self.lines):
            value = row.get(name)
            if not isinstance(value, (Number, type(None))):
                value = quote(shortened(value) if isinstance(value, str) else value)
                raise Problem(f'column {quote(name)} is not numeric: {self.what} has {value} in line {line}')


def unique(pairs):
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Problem(f'column {quote(twice)} is there twice')
    return row


def refuse(name):
    raise Problem(f'{name} is not a number of JSON')


def measured(row, column):
    """Returns the value of a row that has not failed, or None."""
    return row.get(column) if row.get('status') in (None, 'ok') else None


def key(row, columns):
    """Tells rows of different groups apart: 1 and 1.0 are one number, 1 and "1" are not one value."""
    values = [row.get(column) for column in columns]
    return tuple((type(value), Decimal(value.text) if isinstance(value, Number) else value) for value in values)


def to_json(value):
    """A value as JSON; a number that was read is written as it was."""
    if isinstance(value, Number):
        return value.text
    text = json.dumps(value, ensure_ascii=False)
    # Half of a surrogate pair has no UTF-8; JSON has an escape for it.
    return json.dumps(value) if re.search('[\ud800-\udfff]', text) else text


def write(path, rows):
    """Writes rows as compact NDJSON."""
    with open(path, 'w', encoding='utf-8', newline='') as file:
        for row in rows:
            file.write('{' + ','.join(f'{to_json(name)}:{to_json(value)}' for name, value in row.items()) + '}\n')
