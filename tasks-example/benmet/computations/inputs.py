#!/usr/bin/python3
#CE inputs step program given known output lua
#CE outputs parameters active
"""Asks a step of benmet for its inputs, and gives each its value.

`given` has what the task is given. `known` has the parameters before the last step, `output` what that has put out. `parameters` are those that this
step declares, and `active` is what this step and the ones before it have, for the step after it.
"""
import json
import os
import shutil
import subprocess
import sys


def read(path):
    with open(path) as file:
        return file.read()


def parsed(text, what):
    """Reads parameters: an object of JSON, or lines NAME=VALUE."""
    try:
        if not text.lstrip().startswith('{'):
            return dict(line.split('=', 1) for line in text.split('\n') if line)
        return json.loads(text)
    except ValueError as error:
        sys.exit(f'{what}: neither an object of JSON nor lines NAME=VALUE ({error}): {text.strip()}')


def declared(step, program, lua):
    """Returns the inputs of a step, with their defaults. The directory `lua` has modules, such as benmet/util.lua."""
    words, lua = [f'./{program}', 'inputs'], os.path.abspath(lua)
    if program.endswith('.lua'):
        programs = map(shutil.which, ['lua5.3', 'lua53', 'lua', 'lua5.4'])
        words.insert(0, next(filter(None, programs), None) or sys.exit(f'{program} needs Lua, and there is none: install lua5.4'))
    paths = {**os.environ, 'LUA_PATH': f'{lua}/?.lua;{lua}/lunajson/src/?.lua;;'}
    try:
        asked = subprocess.run(words, cwd=step, env=paths, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f'{step}: {error}')
    if asked.returncode:
        sys.exit(f'{step}: {program} inputs ended with status {asked.returncode}')
    return parsed(asked.stdout, f'{step}: {program} inputs')


def typed(value, default):
    """All that is given is text. Where the default of the step is none, it is what JSON says, such as a number."""
    if isinstance(default, str) or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def main():
    step, program, given, known, output, lua, parameters_to, active_to = sys.argv[1:]
    name_of_step, script = read(program).strip().split('/', 1)
    inputs = declared(step, script, lua)
    active = {**parsed(read(known), 'known'), **parsed(read(output), 'output')}
    values = {**parsed(read(given), 'given'), **active}
    if not values.get('RUN-id') and 'RUN-replicate' in values:
        values['RUN-id'] = values['RUN-replicate']
    parameters = {}
    for name, default in inputs.items():
        if name.startswith('REPO-PATH-'):
            repository = name.removeprefix('REPO-PATH-')
            parameters[name] = active[name] = f'../../../{name_of_step}/runs/run/repos/{repository}/'
        elif name.startswith('REPO-'):
            parameters[name] = ''  # known to `start`
        elif name != 'RUN-all-params':
            parameters[name] = active[name] = typed(values.get(name, default), default)
    if 'RUN-all-params' in inputs:
        parameters['RUN-all-params'] = active
    for path, value in (parameters_to, parameters), (active_to, active):
        with open(path, 'w') as file:
            json.dump(value, file, separators=(',', ':'), sort_keys=True)


if __name__ == '__main__':
    main()
