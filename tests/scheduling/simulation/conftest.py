from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from scheduling.simulation.traces import Trace
from workshop.simulator.frames import FramePlanner
from workshop.simulator.planners import SnapshotPlanner
from workshop.simulator.ties import BUSY_FROM, BUSY_TO, Ties, read_published


@pytest.fixture(autouse=True)
def laws_on_every_cycle(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each plan of each simulation is held against the laws, but where a test plans lawlessly."""
    if "lawless" in request.keywords:
        return
    for planner in (FramePlanner, SnapshotPlanner):
        monkeypatch.setattr(planner, "__init__", checked(planner.__init__))


def checked(make: Callable[..., None]) -> Callable[..., None]:
    def make_checked(self, *args, **kwargs) -> None:
        make(self, *args, **(kwargs | {"checked": True}))

    return make_checked


ORIGIN = datetime(2026, 1, 5, tzinfo=UTC)


def make_trace(*jobs: tuple[int, int, int, str], per_node: int = 8) -> Trace:
    """Jobs as (submit second, run time in seconds, GPUs, queue)."""
    queues = tuple(sorted({job[3] for job in jobs}))
    columns = list(zip(*jobs, strict=True)) or [(), (), (), ()]
    return Trace(
        name="made",
        origin=ORIGIN,
        submit_s=np.array(columns[0], dtype=np.int64),
        duration_s=np.array(columns[1], dtype=np.int64),
        gpus=np.array(columns[2], dtype=np.int64),
        queue=np.array([queues.index(q) for q in columns[3]], dtype=np.int64),
        user=np.zeros(len(jobs), dtype=np.int64),
        index=np.arange(len(jobs)),
        queues=queues,
        users=("",),
        gpus_per_node=per_node,
    )


@pytest.fixture(scope="session")
def busy_months() -> Trace:
    folder = Path(settings.WEIR_TRACES) / "philly"
    if not folder.exists():
        pytest.skip(f"no Philly trace in WEIR_TRACES ({settings.WEIR_TRACES})")
    return read_published(folder, begin=BUSY_FROM, end=BUSY_TO, ties=Ties.PUBLISHED)
