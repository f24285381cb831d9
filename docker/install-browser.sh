#!/usr/bin/env bash
# Chromium without windows, for the tests in a browser; install-browser.sh PYTHON. Without root and without any
# Chromium, the other tests run all the same, and their last lines say how many were left out.
set -euo pipefail
cd "$(dirname "$0")/.."
"$1" -m tests.browser >/dev/null && exit 0
[ "$(id -u)" = 0 ] || [ "${CI:-}" = true ] || exit 0
exec docker/install-packages.sh "Chromium, for tests in a browser" chromium-headless-shell
