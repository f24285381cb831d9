"""How much of a core learning and predicting may take in the long run: a pass is followed by a rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SHARE = 0.1
"""Of one core, each."""


@dataclass(slots=True)
class Budget:
    """Of one kind of pass in this process, by cluster. A process that starts anew owes nothing."""

    clock: Callable[[], float] = time.monotonic
    cpu: Callable[[], float] = time.thread_time
    _until: dict[int, float] = field(default_factory=dict)

    def allows(self, cluster_id: int) -> bool:
        return self.clock() >= self._until.get(cluster_id, 0.0)

    def forgive(self, cluster_id: int) -> None:
        """The next pass may begin at once."""
        self._until.pop(cluster_id, None)

    @contextmanager
    def spend(self, cluster_id: int) -> Iterator[None]:
        """A pass that takes c CPU seconds is followed by a rest until c / ``SHARE`` have gone by since it
        began, whatever came of it."""
        began, began_cpu = self.clock(), self.cpu()
        try:
            yield
        finally:
            self._until[cluster_id] = began + (self.cpu() - began_cpu) / SHARE
