#!/usr/bin/env bash
# Debian's PostgreSQL and Redis, for the tests on production parts. They start servers of their own from them.
set -euo pipefail
have() { command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null; }
have initdb && have redis-server && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing PostgreSQL and Redis"
    # At this run level no package starts what it brings, on ports that others may have.
    export RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq postgresql redis-server >/dev/null
else
    echo "The tests on production parts need them. On Debian: apt-get install postgresql redis-server" >&2
    exit 1
fi
