"""What the allocator of a process keeps for itself: little, where several processes share a small machine."""

from __future__ import annotations

import ctypes
from contextlib import suppress

LIBC = ctypes.CDLL(None)
ARENA_MAX = -8
"""Of mallopt(3)."""


def share_one_arena() -> None:
    """Threads take their memory from one place, not each from one of its own that never shrinks."""
    with suppress(AttributeError):  # a libc other than GNU's has no arenas
        LIBC.mallopt(ARENA_MAX, 1)


def give_back() -> None:
    """Whole pages that nobody uses any more go back to the machine."""
    with suppress(AttributeError):
        LIBC.malloc_trim(0)
