#!/usr/bin/python3 -BEs
# field: FILE PATH -> VALUE
#
# Takes one value out of a file of JSON, TOML or YAML. PATH names it: keys, and
# positions in lists counted from 0, with a slash between them, as in
# model/layers/0. A key with a slash is written as in JSON Pointer, ~1 for the
# slash and ~0 for a tilde. VALUE is a text as it is, and anything else as JSON
# with sorted keys, and a newline. So a call that reads it is executed again
# only if this value has changed, and not with every change of the file.
#
# YAML needs the package PyYAML (python3-yaml in Debian).
#CE inputs file path
#CE outputs value

import json
import sys


class Problem(Exception):
    """Something that the user can correct."""


def parse(text):
    """The contents of a file, in the first format that can be read."""
    faults = []
    try:
        return json.loads(text)
    except ValueError as error:
        faults.append(f'JSON: {error}')
    try:
        import tomllib
        return tomllib.loads(text)
    except ImportError:
        faults.append('TOML: this needs Python 3.11')
    except ValueError as error:
        faults.append(f'TOML: {error}')
    try:
        import yaml
        return yaml.safe_load(text)
    except ImportError:
        faults.append('YAML: the package PyYAML is not there')
    except yaml.YAMLError as error:
        faults.append(f'YAML: {" ".join(str(error).split())}')
    raise Problem('the file cannot be read as\n  ' + '\n  '.join(faults))


def step(value, key, way):
    """The part of a value that a key names."""
    place = '/'.join(way) or 'the file'
    if isinstance(value, dict):
        # The keys of YAML may be numbers.
        found = [known for known in value if str(known) == key]
        if not found:
            names = ', '.join(sorted(map(str, value))) or 'no keys'
            raise Problem(f'{place} has no {key}: it has {names}')
        return value[found[0]]
    if isinstance(value, list):
        if not key.isdecimal() or int(key) >= len(value):
            raise Problem(f'{place} is a list of {len(value)} values, and has no {key}')
        return value[int(key)]
    raise Problem(f'{place} is a single value, and has no {key}')


def main(file, path, out):
    with open(file, encoding='utf-8') as opened:
        value = parse(opened.read())
    with open(path, encoding='utf-8') as opened:
        path = opened.read().strip()
    way = []
    for part in path.split('/') if path else []:
        key = part.replace('~1', '/').replace('~0', '~')
        value = step(value, key, way)
        way.append(part)
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    with open(out, 'w', encoding='utf-8') as opened:
        opened.write(text + '\n')


try:
    main(*sys.argv[1:])
except (Problem, UnicodeDecodeError) as problem:
    sys.exit(f'field: {problem}')
