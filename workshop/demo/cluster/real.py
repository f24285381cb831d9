"""Kubernetes as a service: a control plane of our own, or any cluster of a kubeconfig, with
simulated nodes.

The server stamps objects with the wall's time, so that is the cluster's time as well. What is played
faster is the work: arrivals come, and pods do, ``pace`` times as fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from kubernetes.config import ConfigException

from scheduling.cluster.connection.kubeconfig import configuration_from
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from workshop.testbed.control_plane.binaries import NoBinariesError, find
from workshop.testbed.control_plane.plane import ControlPlane, NotReadyError, forget
from workshop.testbed.control_plane.processes import Process, ProcessDiedError
from workshop.testbed.server import Clock

Json = dict[str, Any]


class RealCluster:
    """Kubernetes for ``cluster``: its own in ``folder``, or that of the kubeconfig's ``context``."""

    def __init__(
        self, cluster: Cluster, *, folder: Path, pace: float, start: datetime, context: str = ""
    ) -> None:
        self.cluster = cluster
        self.clock = Clock(speed=pace, start=start)
        self._folder = folder
        self._context = context
        self._plane: ControlPlane | None = None
        self._kubelets: Process | None = None

    def start(self, say: Callable[[str], None]) -> None:
        """Start what is ours of it and point the row there.

        ``say`` hears of a build. Raises ServiceError(code='no_cluster') with the reason.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            kubeconfig = self._attach() if self._context else self._own(say)
        except (ConfigException, NoBinariesError, NotReadyError, ProcessDiedError) as error:
            raise ServiceError("no_cluster", str(error)) from error
        columns: Json = {
            "api_url": "", "kubeconfig": kubeconfig, "context": self._context,
            "clock_start": None, "clock_real": None, "clock_speed": 1,
        }  # fmt: skip
        Cluster.objects.filter(pk=self.cluster.pk).update(**columns)
        self.cluster.refresh_from_db()

    def _own(self, say: Callable[[str], None]) -> str:
        extra = {"kubelets": ["--pace", str(self.clock.speed)]}
        self._plane = ControlPlane(self._folder, find(say), extra=extra).start()
        return self._plane.access.kubeconfig

    def _attach(self) -> str:
        kubeconfig = _usual_kubeconfig()
        configuration_from(kubeconfig, self._context)
        command = [
            sys.executable, "-m", "workshop.testbed.kubelets", "--kubeconfig", kubeconfig,
            "--context", self._context, "--pace", str(self.clock.speed),
        ]  # fmt: skip
        self._kubelets = Process(self._folder, "kubelets", command)
        self._kubelets.stop()
        self._kubelets.start()
        return kubeconfig

    @property
    def kubectl(self) -> str:
        context = f" --context {self._context}" if self._context else ""
        return f"--kubeconfig {self.cluster.kubeconfig}{context}"

    def stop(self) -> None:
        """End what was started; stored objects stay."""
        if self._kubelets is not None:
            self._kubelets.stop()
        if self._plane is not None:
            self._plane.stop()

    def save_clock(self) -> None:
        """The wall keeps its own time."""

    def backdate(self, made: Json, created: datetime) -> None:
        """Kubernetes says itself when an object was made; its place in line is the order of making."""


def abandon(folder: Path) -> None:
    """End what a start that was killed left running in ``folder`` and remove the folder."""
    forget(folder)


def _usual_kubeconfig() -> str:
    """Where kubectl looks."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
