#!/usr/bin/env bash
# Installs Debian's packages as root; elsewhere names the remedy: install-packages.sh WHAT PACKAGE…
set -euo pipefail
what=$1
shift
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Weir: $what is missing. On Debian: apt-get install $*" >&2
    exit 1
fi
echo "Weir: installing $what"
# At this run level no package starts what it brings, on ports that others may have.
export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -qq && apt-get install -y -qq "$@"; } </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    echo "Weir: $what could not be installed; apt-get says why above" >&2
    exit 1
fi
