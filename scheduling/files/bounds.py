"""How much of a file is read, and as what text."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .faults import BrokenFileError, Fault

MOST_BYTES = 64 * 1024 * 1024
"""A snapshot of 120,000 workloads has about 30 MiB."""
STANDARD_INPUT = "-"
NO_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What neither YAML nor JSON lets stand in a file."""


def read_text(name: str) -> str:
    """The text of the UTF-8 file ``name``, or of standard input for ``-``.

    Raises BrokenFileError where it cannot be read, is larger than MOST_BYTES, or is no text.
    """
    data = _read(name)
    if len(data) > MOST_BYTES:
        size = f"at most {MOST_BYTES >> 20} MiB"
        raise BrokenFileError(Fault(name, 0, "", "more than that", size, "give a smaller file"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"a byte {data[error.start]:#04x} that is no text"
        raise BrokenFileError(
            Fault(name, line, "", found, "UTF-8", "save the file as UTF-8")
        ) from None
    odd = NO_TEXT.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise BrokenFileError(
            Fault(name, line, "", f"the character {odd[0]!r}", "printable text", "take it out")
        )
    return text


def _read(name: str) -> bytes:
    """At most one byte more than there may be."""
    try:
        if name == STANDARD_INPUT:
            source = getattr(sys.stdin, "buffer", None)
            whole = MOST_BYTES + 1
            return source.read(whole) if source else sys.stdin.read(whole).encode()
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise BrokenFileError(
            Fault(name, 0, "", f"nothing readable ({found})", "a file", "check name and rights")
        ) from None
