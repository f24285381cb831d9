#!/usr/bin/env bash
# Debian's PostgreSQL, PgBouncer, Redis and OpenLDAP, for the tests on production parts. They start servers of their own from them.
set -euo pipefail
have() { PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null; }
have initdb && have redis-server && have slapd && have pgbouncer && exit 0
exec "$(dirname "$0")/install-packages.sh" "PostgreSQL, PgBouncer, Redis and OpenLDAP, for tests on production parts" postgresql pgbouncer redis-server slapd
