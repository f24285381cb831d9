#!/usr/bin/env bash
# Debian's PostgreSQL and Redis, for the tests on production parts. They start servers of their own from them.
set -euo pipefail
have() { command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null; }
have initdb && have redis-server && exit 0
exec "$(dirname "$0")/install-packages.sh" "PostgreSQL and Redis, for tests on production parts" postgresql redis-server
