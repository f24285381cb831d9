"""What the allocator of a process keeps for itself: little, where several processes share a small machine."""

from __future__ import annotations

import ctypes
from contextlib import suppress

LIBC = ctypes.CDLL(None)
MMAP_THRESHOLD, ARENA_MAX = -3, -8
"""Of mallopt(3)."""
LARGE = 128 * 1024
"""Bytes from which on a block is a mapping of its own, and goes back to the machine when it is freed."""


def keep_little() -> None:
    """Threads take their memory from one place, not each from one of its own that never shrinks; and large
    blocks stay out of it. The library would raise ``LARGE`` to the size of what was freed, up to 32 MiB:
    then one small block that stays keeps all large ones below it, once freed, from going back."""
    with suppress(AttributeError):  # a libc other than GNU's has no arenas
        LIBC.mallopt(ARENA_MAX, 1)
        LIBC.mallopt(MMAP_THRESHOLD, LARGE)


def give_back() -> None:
    """Whole pages that nobody uses any more go back to the machine."""
    with suppress(AttributeError):
        LIBC.malloc_trim(0)
