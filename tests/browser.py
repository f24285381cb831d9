"""The browser of this machine, for every test that drives one: `python -m tests.browser` prints where it is.

Where there is none, those tests are left out and pytest's last lines say how many; in CI they fail.
"""

from __future__ import annotations

import os
import shutil
import sys

LEAN = "chromium-headless-shell"
"""The same engine without windows: a tab and a page take it a third of the CPU-seconds."""
NAMES = (LEAN, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""As packages of Debian, Ubuntu, Fedora, Arch and Google call it; WEIR_BROWSER names another."""
REMEDY = f"Install Chromium (on Debian: apt-get install {LEAN}), or name one: WEIR_BROWSER=PATH"
LEFT_OUT = "there is no Chromium or Chrome"


def find() -> str | None:
    """Path of the program; None where there is none."""
    if named := os.environ.get("WEIR_BROWSER"):
        return shutil.which(named)
    return next(filter(None, map(shutil.which, NAMES)), None)


def is_required() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def summary(skipped: list[str]) -> str:
    """A line for the end of pytest, of why tests were skipped; empty where none for want of a browser."""
    count = sum(LEFT_OUT in reason for reason in skipped)
    tests = "1 browser test was" if count == 1 else f"{count:,} browser tests were"
    return f"{tests} left out: {LEFT_OUT}. {REMEDY}" if count else ""


def main() -> int:
    found = find()
    sys.stdout.write(f"{found}\n" if found else "")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
