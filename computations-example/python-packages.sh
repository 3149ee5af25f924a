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

PYTHONHASHSEED=0
export PYTHONHASHSEED
/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-warn-script-location \
    --root-user-action ignore --require-hashes --no-deps --only-binary :all: --no-compile --target "$2" --requirement "$1"
# These tell how it was installed.
find "$2" -path '*.dist-info/*' \( -name INSTALLER -o -name REQUESTED -o -name direct_url.json \) -delete
find "$2" -path '*.dist-info/RECORD' -exec sed -i '/\/\(INSTALLER\|REQUESTED\|direct_url\.json\),/d' {} +
# Some packages have files that are no Python of this version.
/usr/bin/python3 -m compileall -q -j 1 -s "$2" --invalidation-mode unchecked-hash "$2" >/dev/null || true
