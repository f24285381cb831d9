"""Installs pinned parts into this Python's environment: `python docker/install_parts.py FILE…`.

Says how far it is; a part that can't be had for this Python or processor is named, with the remedy.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

NAMED = re.compile(
    r"(?:No matching distribution found for|Failed to build|Failed building wheel for"
    r"|Could not build wheels for) '?([A-Za-z0-9_.=-]+)"
)
BEGUN = re.compile(r"(?:Collecting|Requirement already satisfied:) ")
UNREACHED = ("Connection", "Timeout", "timed out", "Temporary failure", "SSLError")
TOLD_EVERY = 20


def main(files: list[str]) -> int:
    total = sum(_count(Path(file)) for file in files)
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    for file in files:
        command += ["-r", file]
    process = subprocess.Popen(  # noqa: S603 - pip of this Python
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = _followed(process.stdout or [], total)
    if process.wait():
        sys.stderr.write("".join(f"{line}\n" for line in lines[-15:]))
        sys.stderr.write(f"{why(lines)}\n")
        return 1
    return 0


def _followed(lines: Iterable[str], total: int) -> list[str]:
    """All of pip's ``lines``; a line of ours for every few parts."""
    kept, begun = [], 0
    for line in lines:
        kept.append(line.rstrip())
        if BEGUN.match(line):
            begun += 1
            if begun % TOLD_EVERY == 0:
                print(f"Weir: {begun} of {total} parts", flush=True)  # noqa: T201
    return kept


def why(lines: list[str]) -> str:
    """A sentence and the remedy for pip's last words."""
    here = f"Python {platform.python_version()} on {platform.machine()}"
    if any(word in line for line in lines for word in UNREACHED):
        return (
            "Weir: the package index does not answer. Check the network, then run the same again."
        )
    for line in lines:
        if found := NAMED.search(line):
            return (
                f"Weir: {found[1]} can't be had for {here}. Take another Python, such as 3.11 to 3.14:"
                " rm -r .venv; make PYTHON=python3.13 setup"
            )
    return f"Weir: pip could not install the parts for {here}; the lines above say why."


def _count(file: Path) -> int:
    """Pins of ``file``, those for other platforms too."""
    return sum("==" in line for line in file.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
