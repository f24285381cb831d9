"""Learned orders of the example organisation, lived by the engine or made up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from scheduling.engine import model as m
from scheduling.engine.features import NAMES
from scheduling.models import Cluster, LearnedOrder, LearnedState, LearnedStep
from scheduling.services.learned import searching, training, working
from scheduling.services.learned.figures import BOUNDS
from scheduling.services.learned.training import Effort
from scheduling.services.snapshot import build as snapshots
from scheduling.simulation.ahead.compare import Lived
from scheduling.simulation.ahead.period import Judged, Period
from tests.factories import NOW
from tests.foresight import live_of

SMALL = Effort(generations=1, population=2, replays=5, most_cpu_s=600, rivals=False)
WEIGHTS = dict.fromkeys(NAMES, 0.0) | {"expected_rest": -1.2, "waited": 0.5, "size": -0.3}
Waits = Callable[[m.Snapshot], float]


def begun(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, effort: Effort = SMALL
) -> LearnedOrder:
    searching.stage_of.cache_clear()
    monkeypatch.setattr(snapshots, "live", live_of)
    return training.begin(cluster=cluster, author="admin", effort=effort)


def worked(order: LearnedOrder) -> LearnedOrder:
    """As it stands once nobody finds more to do at once."""
    while training.LearnedOrder.objects.filter(pk=order.pk).exists():
        sent: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "send", sent.append)
            working.work(order.pk)
        if not sent:
            break
    order.refresh_from_db()
    return order


def made_up(
    monkeypatch: pytest.MonkeyPatch,
    wait_s: Waits,
    late: Waits = lambda world: 0.0,
    evictions: int = 0,
) -> None:
    """Lives in place of the engine's: of each job ``wait_s``, a little more by the seed of the draw; a part
    of ``late`` of them ends long after it would have alone."""

    def live(world: m.Snapshot, period: Period) -> Judged:
        count = 40
        shift = float(period.jobs[-1].duration_s % 7)
        wait = np.full(count, wait_s(world) + shift)
        submit = np.zeros(count, np.int64)
        end = (wait + 3600).astype(np.int64)
        end[: round(count * late(world))] += 100_000
        lived = Lived(
            queue=("search",) * count, gpu_class=("h100-80gb",) * count, wait_s=wait,
            started=np.ones(count, np.bool_), submit_s=submit, end_s=end, evictions=evictions,
            lost_gpu_s=0.0, held_gpu_s=1e6,
        )  # fmt: skip
        return Judged(lived, {}, {}, {}, 0)

    monkeypatch.setattr(working, "live_again", live)
    monkeypatch.setattr(searching, "live_again", live)


def by_weights(learned_s: float, other_s: float = 3600.0) -> Waits:
    """Work waits ``learned_s`` where weights decide, ``other_s`` elsewhere."""
    return lambda world: learned_s if world.policy.order_weights else other_s


def an_order(cluster: Cluster, state: LearnedState, version: int = 1, **more: Any) -> LearnedOrder:
    """One that came into ``state`` a day ago, trained on a week that ended three weeks ago."""
    since = more.pop("since", NOW - timedelta(days=1))
    fields = {
        "verdict": verdict(), "weights": WEIGHTS, "spread": {name: [-2.0, 1.0] for name in NAMES},
        "why": "Because.", "sharing": "promise", "workloads": 200,
    }  # fmt: skip
    made = LearnedOrder.objects.create(
        cluster=cluster, version=version, state=state, since=since,
        trained_from=NOW - timedelta(days=28), trained_to=NOW - timedelta(days=21),
        generations=2, population=4, replays=5, most_cpu_s=60, asked_at=since, made_at=timezone.now(),
        **{**fields, **more},
    )  # fmt: skip
    LearnedStep.objects.create(order=made, state=state, at=since, why="Because.")
    return made


def verdict(
    said: str = "better", *, broken: str = "", kinds: tuple[str, ...] = ("later", "later")
) -> dict[str, Any]:
    """Of windows against the order that decides and one more; the first figure of fairness may be passed."""
    return {
        "comparisons": 2 * len(kinds),
        "windows": [_window(number, kind, said, broken) for number, kind in enumerate(kinds)],
    }


def _window(number: int, kind: str, said: str, broken: str) -> dict[str, Any]:
    begin = NOW - timedelta(days=18 - 3 * number)
    sign = 1 if said == "worse" else -1
    cell = {"theirs_s": 3600.0, "difference_s": sign * 480.0, "half_s": 120.0, "verdict": said}
    return {
        "key": f"{kind} {number}",
        "kind": kind,
        "begin": begin.isoformat(),
        "end": (begin + timedelta(days=3)).isoformat(),
        "workloads": 120,
        "mine_s": 3120.0,
        "against": [
            {"order": "now", "name": "Promise", **cell},
            {"order": "arrival", "name": "Fair share, arrival order", **cell},
        ],
        "bounds": [
            {"figure": name, "now": 0.5, "mine": 0.4, "most": most, "is_kept": name != broken}
            for name, most in BOUNDS.items()
        ],
    }
