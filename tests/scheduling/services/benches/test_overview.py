"""The demo that a bench starts ends with the bench, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

CHILD = "import time; time.sleep(60)"
PARENT = f"""
import signal, subprocess, sys, time
# Whoever was started in the background ignores it from birth.
signal.signal(signal.SIGINT, signal.default_int_handler)
from workshop.testbed.parts import end_with_parent
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], preexec_fn=end_with_parent)
print(child.pid, flush=True)
time.sleep(60)
"""
PATIENCE_S = 20.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_child_of_a_parent_that_is_gone_ends(number: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(number)
    parent.communicate(timeout=PATIENCE_S)

    until = time.monotonic() + PATIENCE_S
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.05)
