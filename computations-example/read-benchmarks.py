#!/usr/bin/python3 -BEs
# read-benchmarks: RESULTS -> ROWS
#
# Makes a table of the file that a tool for benchmarks has written: JSON of
# hyperfine (--export-json), Google Benchmark (--benchmark_format=json) or
# pytest-benchmark (--benchmark-json, with --benchmark-save-data), or the text
# of go test -bench. ROWS is NDJSON, one row for each measured value:
#   the command or benchmark, and its parameters, by their names; also the
#     file or package, if there are several
#   replicate    the number of the value at this point, from 1
#   seconds      the time of one repetition
# and the other numbers that the tool has for each value, by their own names; and
# status, failed or ok, if a benchmark has failed.
# Statistics of the tool are left out: summarise-table makes them.
#CE inputs results
#CE outputs rows

import json
import re
import sys

UNITS = {'ns': 1e9, 'us': 1e6, 'ms': 1e3, 's': 1.0}
SETTINGS = re.compile('(real_time|process_time|manual_time|(repeats|iterations|min_time|min_warmup_time):.*)')


class Problem(Exception):
    """Something that the user can correct."""


def typed(text):
    """A parameter: a number where it is written as one."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return text
    return int(text) if re.fullmatch(r'-?(0|[1-9][0-9]*)', str(text)) else number


def from_hyperfine(data):
    for result in data['results']:
        if 'times' not in result:
            raise Problem('the JSON of hyperfine has no times: it was made without --export-json')
        parameters = {name: typed(value) for name, value in (result.get('parameters') or {}).items()}
        for seconds, status in zip(result['times'], result.get('exit_codes') or [0] * len(result['times'])):
            measured = {'seconds': seconds} if status in (0, None) else {'seconds': seconds, 'exit_code': status}
            yield {'command': result['command'], **parameters}, measured


def named(name):
    """The parts of a name such as sort/threads=4/1024: the benchmark, and its parameters."""
    benchmark, *parts = name.split('/')
    parts = [part for part in parts if not SETTINGS.fullmatch(part)]
    row = {'benchmark': benchmark}
    for number, part in enumerate(parts):
        key, sign, value = part.partition('=') if '=' in part else part.partition(':')
        if sign:
            row[key] = typed(value)
        else:
            row[f'parameter{number}'] = typed(part)
    return row


SKIPPED = {'name', 'run_name', 'run_type', 'repetitions', 'repetition_index', 'threads', 'iterations', 'real_time', 'cpu_time',
           'time_unit', 'family_index', 'per_family_instance_index', 'aggregate_name', 'aggregate_unit', 'error_occurred',
           'error_message', 'label'}


def from_google(data):
    for result in data['benchmarks']:
        if result.get('run_type', 'iteration') != 'iteration':
            continue
        row = named(result.get('run_name', result['name']))
        if result.get('error_occurred'):
            print(f"{result['name']} failed: {result.get('error_message')}", file=sys.stderr)
            yield row, {'status': 'failed'}
            continue
        unit = UNITS[result.get('time_unit', 'ns')]
        if result.get('threads', 1) != 1:
            row['threads'] = result['threads']
        others = {name: value for name, value in result.items() if name not in SKIPPED and isinstance(value, (int, float))}
        yield row, {'seconds': result['real_time'] / unit, 'cpu_seconds': result['cpu_time'] / unit, **others}


def from_pytest(data):
    for result in data['benchmarks']:
        file, name = re.fullmatch('(?:(.*?)::)?(.*)', result.get('fullname', result['name']), re.DOTALL).groups('')
        row = {'file': file, 'benchmark': name.partition('[')[0], **(result.get('params') or {})}
        if result.get('group') is not None:
            row['group'] = result['group']
        values = result['stats'].get('data')
        if values is None:
            raise Problem('the JSON of pytest-benchmark has only statistics: make it with --benchmark-save-data')
        for seconds in values:
            yield row, {'seconds': seconds}


GO = re.compile(r'(Benchmark\S*)\s+(\d+)\s+(.*)')


def from_go(text):
    package = ''
    for line in text.splitlines():
        if line.startswith('pkg:'):
            package = line.partition(':')[2].strip()
        found = GO.fullmatch(line.strip())
        if not found:
            continue
        name, _, rest = found.groups()
        name, dash, cpus = name.rpartition('-')
        row = {'pkg': package, **named(name if dash and cpus.isdecimal() else found[1])}
        if dash and cpus.isdecimal():
            row['cpus'] = int(cpus)
        words, measured = rest.split(), {}
        for value, unit in zip(words[::2], words[1::2]):
            if unit == 'ns/op':
                measured['seconds'] = float(value) / 1e9
            else:
                measured[unit] = typed(value)
        yield row, measured


def rows(text):
    try:
        data = json.loads(text)
    except ValueError:
        if not GO.search(text):
            raise Problem('the file is neither JSON nor the text of go test -bench') from None
        return from_go(text)
    if isinstance(data, dict) and 'results' in data:
        return from_hyperfine(data)
    if isinstance(data, dict) and 'benchmarks' in data:
        return from_pytest(data) if 'machine_info' in data else from_google(data)
    raise Problem('the JSON is not that of hyperfine, Google Benchmark or pytest-benchmark')


def main(results, out):
    with open(results, encoding='utf-8') as opened:
        found = list(rows(opened.read()))
    if not found:
        raise Problem('the file has no measurements')
    for place in ['file', 'pkg']:
        if len({point.get(place) for point, _ in found}) == 1:
            found = [({name: value for name, value in point.items() if name != place}, measured) for point, measured in found]
    if any('status' in measured for _, measured in found):
        found = [(point, {**measured, 'status': measured.get('status', 'ok')}) for point, measured in found]
    # All names of parameters stand before the replicate in each row, so that a reader knows them as such.
    names = list(dict.fromkeys(name for point, _ in found for name in point))
    found = [({name: point.get(name) for name in names}, measured) for point, measured in found]
    counts = {}
    with open(out, 'w', encoding='utf-8') as opened:
        for point, measured in found:
            key = json.dumps(point, sort_keys=True)
            counts[key] = counts.get(key, 0) + 1
            row = {**point, 'replicate': counts[key], **measured}
            opened.write(json.dumps(row, ensure_ascii=False) + '\n')


try:
    main(*sys.argv[1:])
except (Problem, KeyError, TypeError, UnicodeDecodeError) as problem:
    sys.exit(f'read-benchmarks: {problem}')
