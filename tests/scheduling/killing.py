"""A worker process that dies in the middle of what it does, and the one that is started after it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from scheduling.cluster.connection.client import Client
from scheduling.services.worker import cluster_turns as workers
from tests.scheduling.kube import World

LEASE = "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases/weir-engine"


class KilledError(BaseException):
    """The process is gone, in the middle of whatever it did."""


def die_at_write(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> list[str]:
    """Kill the process at its ``number``-th write to a Job or Event, before or after it was done."""
    seen: list[str] = []
    lock = threading.Lock()
    request = Client.request

    def fragile(self: Client, method: str, path: str, **more: Any) -> Any:
        counted = method in ("PUT", "PATCH", "POST") and (
            "/jobs/" in path or path.endswith("/events")
        )
        if not counted:
            return request(self, method, path, **more)
        with lock:
            seen.append(path)
            fatal = len(seen) == number
        if fatal and not after:
            raise KilledError
        answer = request(self, method, path, **more)
        if fatal:
            raise KilledError
        return answer

    monkeypatch.setattr(Client, "request", fragile)
    return seen


def restart(world: World) -> None:
    """A new process: nothing in memory, and the dead one's lease has run out."""
    dead = workers._turns.pop(world.cluster.pk, None)
    if dead is not None:
        dead.call.close()
        dead.link.leave()
        dead.link.mirror.stop()
        dead.link.enforcer.close()
    world.kube.delete(LEASE)
