"""The Kubernetes control plane that a session of tests shares, started when the first test asks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workshop.testbed.control_plane.binaries import find
from workshop.testbed.control_plane.plane import ControlPlane, forget
from workshop.testbed.control_plane.processes import Identity

ON = os.environ.get("WEIR_TEST_CLUSTER") == "real"
"""Whether suites that run on any API server run on a real one."""
FOLDER = Path(__file__).parents[2] / "var" / "test-cluster"
_OWNER = "owner"


@contextmanager
def control_plane(name: str = "") -> Iterator[ControlPlane]:
    """One for this process, and each ``name``. What a killed session left behind is ended first."""
    _sweep()
    folder = FOLDER / f"{os.getpid()}{name}"
    folder.mkdir(parents=True)
    Identity.of(os.getpid()).write(folder / _OWNER)
    # Kubelets start pods at once, so that tests wait for controllers only.
    extra = {"kubelets": ["--startup", "0"]}
    try:
        with ControlPlane(folder, find(print), extra=extra) as plane:
            yield plane
    finally:
        forget(folder)


def _sweep() -> None:
    for folder in FOLDER.glob("*"):
        owner = Identity.read(folder / _OWNER)
        # Another worker may have made its folder and not yet said whose it is.
        is_new = owner is None and Path("/proc", folder.name).exists()
        if not is_new and (owner is None or not owner.is_alive):
            forget(folder)
            shutil.rmtree(folder, ignore_errors=True)
