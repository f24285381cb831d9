"""What the command compiles is all that a process will ever call."""

from __future__ import annotations

import os
import subprocess
import sys

COUNTED = """
import gc, importlib, pkgutil, runpy
import scheduling.engine
for module in pkgutil.walk_packages(scheduling.engine.__path__, "scheduling.engine."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from numba.core.registry import CPUDispatcher
from scheduling.engine.compile.machine import KernelCache
runpy.run_module("scheduling.engine", run_name="__main__")
for one in gc.get_objects():
    if isinstance(one, CPUDispatcher) and isinstance(one._cache, KernelCache):
        print(one.py_func.__name__, len(one.signatures))
"""


def test_command_reads_nothing_past_an_end():
    """Which machine code does without a word."""
    subprocess.run(
        [sys.executable, "-m", "scheduling.engine"], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True
    )  # fmt: skip


def test_every_kernel_is_compiled_by_the_command_once():
    printed = subprocess.run(
        [sys.executable, "-c", COUNTED], env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    counts = dict(line.split() for line in printed.splitlines())
    assert "play" in counts
    assert {name for name, count in counts.items() if count != "1"} == set()
