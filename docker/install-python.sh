#!/usr/bin/env bash
# Makes a virtual environment: install-python.sh PYTHON FOLDER.
# Debian ships venv apart from Python; as root it is installed, otherwise the remedy is named.
set -euo pipefail
python=$1 folder=$2

"$python" - <<'PY' || { echo "Weir needs Python 3.11 or later; name one: make PYTHON=python3.12 …" >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY

if ! "$python" -c "import ensurepip, venv" 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    else
        echo "Python's venv module is missing. On Debian: apt-get install python3-venv" >&2
        exit 1
    fi
fi
"$python" -m venv "$folder"
