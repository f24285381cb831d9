"""Lives that are made up, in place of the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scheduling.services.studies.capacity import lives as capacity
from scheduling.simulation.ahead.compare import WindowOutcome

JOBS = 30


def made_up(
    monkeypatch: pytest.MonkeyPatch,
    asked: list[Any] | None = None,
    after: Callable[[int], None] = lambda lived: None,
) -> list[tuple[int, int]]:
    """(nodes of the world, seed) of each life from now on; ``after`` is called with how many there were.

    Waits fall with the nodes of the world and rise a little with the seed.
    """
    lives: list[tuple[int, int]] = []

    def life(world: Any, jobs: Any, begun: int, past: Any, seed: int) -> WindowOutcome:
        lives.append((len(world.nodes), seed))
        if asked is not None:
            asked.append((len(world.nodes), past.submissions, world.now, seed))
        after(len(lives))
        classes = [one.name for one in world.gpu_classes for _ in range(JOBS)]
        wait_s = [
            3600.0 * seed / (1 + sum(node.gpu_class == name for node in world.nodes))
            for name in classes
        ]
        count = len(classes)
        zero = np.zeros(count, np.int64)
        return WindowOutcome(
            queue=("",) * count, gpu_class=tuple(classes), wait_s=np.array(wait_s),
            started=np.ones(count, np.bool_), submit_s=zero, end_s=zero, evictions=0,
            lost_gpu_s=0.0, held_gpu_s=0.0,
        )  # fmt: skip

    monkeypatch.setattr(capacity, "life", life)
    return lives
