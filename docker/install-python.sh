#!/usr/bin/env bash
# Makes a virtual environment: install-python.sh PYTHON FOLDER.
# Debian ships venv apart from Python.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 folder=$2

version() { "$python" -c 'import sys; print("{}.{}".format(*sys.version_info))' 2>/dev/null; }
found=$(version) || found=
case $found in
"") echo "Weir: no Python runs as '$python'. On Debian: apt-get install python3; another: make PYTHON=python3.12 …" >&2; exit 1 ;;
2.* | 3.[0-9] | 3.10)
    echo "Weir needs Python 3.11 or later, '$python' is $found. Name another: make PYTHON=python3.12 …" >&2
    exit 1 ;;
esac

echo "Weir: making $folder with Python $found, which holds everything that is installed"
"$python" -c "import ensurepip, venv" 2>/dev/null ||
    docker/install-packages.sh "Python's part that makes $folder" "python$found-venv"
"$python" -m venv "$folder"
