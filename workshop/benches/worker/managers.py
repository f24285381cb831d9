"""Managers that start the Jobs of a bench: Weir's workers, or the reference."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.control_plane.processes import Process, ProcessDiedError

READY_S = 180.0
"""Making the tables and loading the engine's compiled kernels takes a while on a busy machine."""
POLL_S = 0.5

Start = Callable[[ControlPlane, Path], Process]
"""Starts a manager for the load in a file; returns once it manages. Raises ProcessDiedError."""


def start_worker(plane: ControlPlane, load_file: Path) -> Process:
    """In processes of their own, with a database of its own beside the control plane; the environment is that
    of the image."""
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{plane.folder / 'weir.sqlite3'}",
        "WEIR_BROKER_URL": f"folder://{plane.folder / 'broker'}",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "131072",
    }
    _prepare_database(plane, load_file, environment)
    worker = Process(plane.folder, "worker", program("worker"))
    worker.start(environment)
    _await(worker)
    return worker


def start_reference(plane: ControlPlane, load_file: Path) -> Process:
    command = program("reference", plane.access.kubeconfig, load_file)
    reference = Process(plane.folder, "reference", command)
    reference.start()
    _await(reference)
    return reference


def program(name: str, *arguments: Path | str) -> list[str]:
    """The command line of a module of this package."""
    return [sys.executable, "-m", f"{__package__}.{name}", *map(str, arguments)]


def _await(manager: Process) -> None:
    until = time.monotonic() + READY_S
    while "ready" not in manager.tail().splitlines():
        manager.check()
        if time.monotonic() > until:
            raise ProcessDiedError(
                f"The {manager.name} was not ready in {READY_S:g} s:\n{manager.tail()}"
            )
        time.sleep(POLL_S)


def _prepare_database(plane: ControlPlane, load_file: Path, environment: Mapping[str, str]) -> None:
    command = program("database", plane.access.kubeconfig, load_file)
    done = subprocess.run(  # noqa: S603 - our own command line
        command, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ProcessDiedError(f"No database for the worker:\n{done.stderr}")
