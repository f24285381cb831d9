"""Whether kernels run as plain Python, which is read once, before the first of them is imported."""

from __future__ import annotations

import os
import sys

VARIABLE = "NUMBA_DISABLE_JIT"
PLAIN = os.environ.get(VARIABLE, "0").strip() not in ("", "0")
"""Nothing of Numba is imported then: it and machine code take longer to load than a small plan in Python."""


def run_plainly() -> None:
    """For a process that plans little and ends; without effect once it has loaded what makes machine code."""
    if not any(f"{__package__}.{name}" in sys.modules for name in ("kernel", "structs")):
        globals()["PLAIN"] = True
