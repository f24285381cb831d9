"""Any life of a cluster: what the snapshot of a cycle says of claims and evictions is what the plan before it
left, whatever ends, comes, leaves or dies in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.engine import Plan, Snapshot
from scheduling.models import Cluster, PriorityClass, State
from scheduling.services.cycle import run as cycle
from scheduling.services.cycle.record import claims
from scheduling.services.cycle.record import plan as recording
from scheduling.simulation.run.carrying import differences
from tests.scheduling.killing import restart
from tests.scheduling.kube import JOBS, World

STEPS = 36
PODS = "/api/v1/namespaces/default/pods"


class DiedError(BaseException):
    """The worker, between the commit of a plan and the first write of it."""


@dataclass
class Life:
    """One that is drawn: jobs of both queues come, end and are cancelled, and victims leave one by one."""

    world: World
    dice: random.Random
    lived: list[tuple[Snapshot, Plan]] = field(default_factory=list)
    """What each cycle committed."""
    kept: int = 0
    """Claims that were stated again by a later snapshot."""
    number: int = 0

    def step(self) -> None:
        move = self.dice.choices(
            (self.come, self.come_urgent, self.leave, self.end, self.cancel, self.restart),
            (40, 12, 25, 12, 6, 5),
        )[0]
        move()
        self.world.cycle()
        self.compare()

    def compare(self) -> None:
        if len(self.lived) < 2:
            return
        (before, plan), (seen, _) = self.lived[-2:]
        assert differences(before, plan, seen) == []
        self.kept += sum(work.awaits_victims for work in seen.workloads)

    def come(self, **more: Any) -> None:
        self.number += 1
        self.world.job(
            f"w{self.number}",
            gpus=self.dice.choice((2, 4, 8)),
            pods=self.dice.choice((1, 1, 2)),
            queue=self.dice.choice(("research", "research", "products")),
            grace_s=3600,
            **more,
        )

    def come_urgent(self) -> None:
        self.come(priority_class="urgent")

    def leave(self) -> None:
        """One pod that is to go is gone."""
        going = [p for p in self._pods() if p["metadata"].get("deletionTimestamp")]
        if going:
            self._let_go(self.dice.choice(going))

    def end(self) -> None:
        """What runs has done its work."""
        self._remove(State.RUNNING)

    def cancel(self) -> None:
        self._remove(State.PENDING, State.REQUEUED, State.EVICTED)

    def restart(self) -> None:
        """Another worker goes on."""
        with suppress(NotFoundError):  # Nobody has taken it since the last one died.
            restart(self.world)

    def _remove(self, *states: State) -> None:
        rows = self.world.cluster.workloads.filter(state__in=states).order_by("pk")
        names = list(rows.values_list("name", flat=True))
        if not names:
            return
        name = self.dice.choice(names)
        self.world.kube.delete(f"{JOBS}/{name}")
        for pod in self._pods():
            if pod["metadata"]["name"].startswith(f"{name}-"):
                self._let_go(pod)

    def _pods(self) -> list[dict[str, Any]]:
        return list(self.world.kube.get(PODS)["items"])

    def _let_go(self, pod: dict[str, Any]) -> None:
        path = f"{PODS}/{pod['metadata']['name']}"
        self.world.kube.delete(path, {"gracePeriodSeconds": 0})


@pytest.fixture(autouse=True)
def no_word_broken(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The worker, which holds itself against it, says the same."""
    yield
    said = [r.getMessage() for r in caplog.get_records("call") if r.name == claims.__name__]
    assert said == []


@pytest.fixture
def life(world: World, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Life:
    Cluster.objects.update(preemption_delay_s=0, fair_share_delay_s=0, cooldown_s=0)
    PriorityClass.objects.create(name="urgent", value=90)
    drawn = Life(world, random.Random(request.param))
    record = recording.record

    def listen(done: recording.Pass) -> Any:
        drawn.lived.append((done.snapshot, done.plan.whole()))
        return record(done)

    monkeypatch.setattr(recording, "record", listen)
    return drawn


@pytest.mark.parametrize("life", [0], indirect=True)
def test_snapshot_states_what_the_plan_before_it_left(life: Life) -> None:
    for _ in range(STEPS):
        life.step()
    assert life.kept > 5  # Else nobody's claim was put to the test.


@pytest.mark.parametrize("life", [10], indirect=True)
def test_snapshot_states_what_a_plan_left_whose_worker_died_before_it_wrote(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> Any:
        raise DiedError

    died = 0
    for _ in range(STEPS):
        if life.dice.random() < 0.3:
            life.dice.choice((life.come, life.come_urgent))()
            with monkeypatch.context() as dying:
                dying.setattr(cycle, "_enforce", die)
                with pytest.raises(DiedError):
                    life.world.cycle()
            life.compare()
            died += any(d.action == "evict" for d in life.lived[-1][1].decisions)
            life.restart()
        life.step()
    assert life.kept > 5
    assert died > 0
