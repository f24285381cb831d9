"""Where a load is played: storage of a real control plane, a manager and the runner, each a process."""

from __future__ import annotations

import re
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.kubeconfig import configuration_from
from scheduling.services.worker.spending import MIB, spent
from workshop.testbed.control_plane.access import Access
from workshop.testbed.control_plane.binaries import find
from workshop.testbed.control_plane.furniture import furnish
from workshop.testbed.control_plane.plane import STORAGE, ControlPlane, forget
from workshop.testbed.control_plane.processes import Identity, Process, ProcessDiedError
from workshop.testbed.kubelets import Machine

from .managers import Start, program, start_worker
from .record import Cost, Record
from .runner import NAMESPACE, RESOURCE
from .work import Load

POLL_S = 0.5
REPORTED_S = 10.0
LIMIT_S = 3600.0
"""A load that takes longer than that will never be over."""
NODES = 10
ROOM = 2
"""The nodes together hold so many times the nominal units: quota is what binds."""
WRITES = re.compile(
    r'^apiserver_request_total\{(?=[^}]*,resource="(\w+)")(?=[^}]*verb="(?:POST|PUT|PATCH|APPLY|DELETE)")'
    r"[^}]*\} (\S+)$",
    re.MULTILINE,
)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """A running control plane with nodes, and a manager that is ready."""

    plane: ControlPlane
    manager: Process
    load_file: Path

    @property
    def folder(self) -> Path:
        return self.plane.folder


@contextmanager
def stage(load: Load, folder: Path, say: Say, start: Start = start_worker) -> Iterator[Stage]:
    """Set up in ``folder``, which is emptied before and after; ``start`` is the manager's.

    Raises NoBinariesError, NotReadyError or ProcessDiedError.
    """
    forget(folder)
    folder.mkdir(parents=True)
    try:
        with ControlPlane(folder, find(say), parts=STORAGE) as plane:
            _furnish(plane.access, load)
            load_file = folder / "load.json"
            load.write(load_file)
            yield Stage(plane, start(plane, load_file), load_file)
    finally:
        forget(folder)


def play(load: Load, at: Stage, say: Say) -> Record:
    """Put ``load`` on the stage; what came of it, once it is over. Raises ProcessDiedError."""
    access, record = at.plane.access, at.folder / "record.json"
    manager = at.manager.name
    pids = {name: _pid(at.folder, name) for name in (manager, *STORAGE)}
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    peak = Peak(pids[manager])
    writes = count_writes(access)
    runner = Process(
        at.folder, "runner", program("runner", access.kubeconfig, at.load_file, record)
    )
    runner.start()
    _wait(runner, at, record, say, peak)
    after = {name: cpu_s(pid) - before[name] for name, pid in pids.items()}
    since = {kind: n - writes.get(kind, 0) for kind, n in count_writes(access).items()}
    server = sum(after[name] for name in STORAGE)
    return Record.read(record, Cost(after[manager], peak.mib, server, since))


def _wait(runner: Process, at: Stage, record: Path, say: Say, peak: Peak) -> None:
    began = reported = time.monotonic()
    while not record.exists():
        at.manager.check()
        if not runner.is_alive and not record.exists():
            raise ProcessDiedError(f"The runner ended by itself; its log says:\n{runner.tail()}")
        time.sleep(POLL_S)
        if time.monotonic() - began > LIMIT_S:
            raise ProcessDiedError(f"The load is not over after {LIMIT_S:g} s:\n{runner.tail()}")
        if time.monotonic() - reported > REPORTED_S:
            reported = time.monotonic()
            peak.look()
            say(f"{reported - began:.0f} s: {runner.tail().rpartition(chr(10))[2]}")


def _furnish(access: Access, load: Load) -> None:
    client = Client(configuration_from(access.kubeconfig))
    client.create(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    )
    # One Job is one pod, which no node may be too small for.
    each = load.units * ROOM // NODES + max(kind.units for kind in load.classes)
    names = [f"node-{n}" for n in range(NODES)]
    furnish(access, (Machine(name, RESOURCE, each, 1000, 10_000) for name in names))
    for name in names:
        # New nodes are tainted until a node controller, which does not run here, has seen them ready.
        client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    client.close()


def _pid(folder: Path, name: str) -> int:
    identity = Identity.read(folder / f"{name}.pid")
    if identity is None:
        raise ProcessDiedError(f"{name} does not run.")
    return identity.pid


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and all that it started so far, in user and system mode."""
    found = spent(pid)
    return found.cpu_s if found else 0.0


class Peak:
    """The most memory that a process and those below it held together, looked at every ``REPORTED_S``."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.mib = 0.0
        self.look()

    def look(self) -> None:
        if found := spent(self._pid):
            self.mib = max(self.mib, found.memory / MIB)


def count_writes(access: Access) -> dict[str, int]:
    """Writes that the API server has answered, by resource."""
    context = ssl.create_default_context(cafile=access.ca_file)
    headers = {"Authorization": f"Bearer {access.token}"}
    request = urllib.request.Request(f"{access.url}/metrics", headers=headers)  # noqa: S310 - https of our own
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:  # noqa: S310 - the same
        return writes_in(answer.read().decode())


def writes_in(metrics: str) -> dict[str, int]:
    """The same from the text of ``/metrics``."""
    found: dict[str, int] = {}
    for kind, number in WRITES.findall(metrics):
        found[kind] = found.get(kind, 0) + int(float(number))
    return found
