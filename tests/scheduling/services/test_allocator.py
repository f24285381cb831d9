"""What the allocator keeps goes back to the machine."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from scheduling.services.worker import allocator

HOLED = """
import ctypes
from pathlib import Path
from scheduling.services.worker.allocator import LIBC, give_back, keep_little

keep_little()
LIBC.malloc.restype, LIBC.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def held_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // 2**20
held = [LIBC.malloc(16384) for _ in range(4000)]
for place in held:
    ctypes.memset(place, 1, 16384)
for place in held[:-1]:
    LIBC.free(place)
before = held_mib()
give_back()
print(before - held_mib())
"""
"""62 MiB below one block that stays."""


def test_pages_below_what_stays_are_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLED], capture_output=True, text=True, check=True)

    assert int(done.stdout) > 50


LARGE = """
import ctypes
from pathlib import Path
from scheduling.services.worker.allocator import LIBC, keep_little

keep_little()
LIBC.malloc.restype, LIBC.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def held_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // 2**20
LIBC.free(LIBC.malloc(24 << 20))
held = [LIBC.malloc(1 << 20) for _ in range(60)]
above = LIBC.malloc(1000)
for place in held:
    ctypes.memset(place, 1, 1 << 20)
before = held_mib()
for place in held:
    LIBC.free(place)
print(before - held_mib())
"""
"""60 MiB in large blocks, after a larger one, below a small one that stays."""


def test_large_blocks_go_back_when_they_are_freed_whatever_stays_above_them() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)

    assert int(done.stdout) > 50


def test_other_libc_without_arenas_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "LIBC", SimpleNamespace())

    allocator.keep_little()
    allocator.give_back()
