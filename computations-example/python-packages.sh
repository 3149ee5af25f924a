#!/bin/sh
# python-packages: LOCK -> PACKAGES
#
# Installs Python packages, as a value. LOCK is a requirements file of pip with a
# version and a hash for each package, as pip-compile --generate-hashes and uv pip
# compile --generate-hashes write it. PACKAGES is a directory: what is imported at
# its top, programs in bin. Modules are compiled, so that an import costs no more
# than outside; compiled files have hashes, not dates, and the same lock gives the same
# bytes. It takes the Python of the system with pip (python3-pip in Debian), and the network.
#CE inputs lock
#CE outputs packages/
#CE access network

set -eu

PYTHONHASHSEED=0 PIP_ROOT_USER_ACTION=ignore
export PYTHONHASHSEED PIP_ROOT_USER_ACTION
/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-warn-script-location \
    --require-hashes --no-deps --only-binary :all: --no-compile --target "$2" --requirement "$1"
# These tell how it was installed.
find "$2" -path '*.dist-info/*' \( -name INSTALLER -o -name REQUESTED -o -name direct_url.json \) -delete
find "$2" -path '*.dist-info/RECORD' -exec sed -i '/\/\(INSTALLER\|REQUESTED\|direct_url\.json\),/d' {} +
# Some packages have files that are no Python of this version: these are left as they are.
/usr/bin/python3 - "$2" <<'END'
import os, py_compile, sys
for place, _, names in os.walk(sys.argv[1]):
    for name in sorted(names):
        path = os.path.join(place, name)
        if name.endswith('.py') and not os.path.islink(path):
            try:
                py_compile.compile(path, dfile=os.path.relpath(path, sys.argv[1]), doraise=True,
                                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
            except (py_compile.PyCompileError, UnicodeDecodeError):
                pass
END
