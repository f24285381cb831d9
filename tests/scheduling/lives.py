"""A life of a cluster that is drawn: jobs come, end, are cancelled, victims leave one by one, workers die."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.engine import Plan, Snapshot
from scheduling.models import Cluster, PriorityClass, State
from scheduling.services.cycle.record import plan as recording
from scheduling.simulation.run.carrying import differences
from tests.scheduling.killing import restart
from tests.scheduling.kube import JOBS, World, eventually

STEPS = 36
PODS = "/api/v1/namespaces/default/pods"


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
        self.cycle()

    def cycle(self) -> None:
        """One, once the cluster has done what was asked of it so far: else what a plan finds is as quick as
        the machine is."""
        eventually(self._is_done)
        self.world.cycle()
        self.compare()

    def _is_done(self) -> bool:
        """Whether all pods are there and run of Jobs that were started, and leave or are gone of others."""
        wanted = {
            job["metadata"]["uid"]: 0 if job["spec"]["suspend"] else job["spec"]["parallelism"]
            for job in self.world.kube.get(JOBS)["items"]
        }
        run = Counter[str]()
        for pod in self._pods():
            (owner,) = pod["metadata"]["ownerReferences"]
            leaves = pod["metadata"].get("deletionTimestamp")
            if owner["uid"] not in wanted or not (leaves or pod["status"]["phase"] == "Running"):
                return False
            run[owner["uid"]] += not leaves
        return all(run[uid] == count for uid, count in wanted.items())

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
        with suppress(NotFoundError):  # It may have been about to go.
            self.world.kube.delete(path, {"gracePeriodSeconds": 0})
        eventually(
            lambda: pod["metadata"]["uid"] not in {p["metadata"]["uid"] for p in self._pods()}
        )


@contextmanager
def begun(world: World, seed: int) -> Iterator[Life]:
    """A life on ``world`` in which nothing delays an eviction; it notes every plan that is committed."""
    Cluster.objects.update(preemption_delay_s=0, fair_share_delay_s=0, cooldown_s=0)
    PriorityClass.objects.create(name="urgent", value=90)
    drawn = Life(world, random.Random(seed))
    record = recording.record

    def listen(done: recording.Pass) -> Any:
        drawn.lived.append((done.snapshot, done.plan.whole()))
        return record(done)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "record", listen)
        yield drawn
