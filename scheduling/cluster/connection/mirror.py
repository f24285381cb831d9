"""A live copy of some of a cluster's objects: several resources that start, stop and sync together."""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from typing import Any

from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.reflector import Reflector

Json = dict[str, Any]

STOP_S = 2.0
"""All threads of a mirror together get so long to end; they are no reason to keep a process."""


class Mirror:
    """Several reflectors that start, stop and sync together.

    ``resources`` maps a name to (list path, trim); ``on_change`` is called from the mirror's threads
    after every change and has to be quick. ``optional`` names those that a cluster may lack.
    """

    def __init__(
        self,
        client: Client,
        resources: dict[str, tuple[str, Callable[[Json], Json]]],
        *,
        on_change: Callable[[], None] = lambda: None,
        optional: Container[str] = frozenset(),
    ) -> None:
        self.client = client
        self._reflectors = {
            name: Reflector(client, path, trim=trim, on_change=on_change, optional=name in optional)
            for name, (path, trim) in resources.items()
        }

    def __getitem__(self, name: str) -> Reflector:
        return self._reflectors[name]

    def start(self) -> None:
        for reflector in self._reflectors.values():
            reflector.start()

    def stop(self) -> None:
        for reflector in self._reflectors.values():
            reflector.stop()
        until = time.monotonic() + STOP_S
        for reflector in self._reflectors.values():
            reflector.join(max(0.0, until - time.monotonic()))

    def wait_synced(self, timeout_s: float) -> bool:
        """Whether every resource has been listed once, waiting at most ``timeout_s`` for it."""
        until = time.monotonic() + timeout_s
        return all(
            r.synced.wait(max(0.0, until - time.monotonic())) for r in self._reflectors.values()
        )

    def lag_s(self) -> float:
        """The longest that any resource has been out of touch with the server, in seconds."""
        return max((r.lag_s() for r in self._reflectors.values()), default=0.0)

    def size(self) -> int:
        """How many objects it holds."""
        return sum(reflector.size() for reflector in self._reflectors.values())

    @property
    def generation(self) -> int:
        return sum(r.generation for r in self._reflectors.values())
