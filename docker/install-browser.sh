#!/usr/bin/env bash
# Debian's Chromium, for the browser tests.
set -euo pipefail
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Chromium"
    apt-get update -qq && apt-get install -y -qq chromium >/dev/null
else
    echo "The browser tests need Chromium. On Debian: apt-get install chromium" >&2
    exit 1
fi
