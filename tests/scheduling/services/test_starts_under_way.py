"""Starts whose writes are slow: the next plan is made meanwhile, and counts them as made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.cluster.adapters import JobAdapter, Sighting
from scheduling.cluster.connection.client import Client, InvalidError
from scheduling.cluster.picture.compose import Picture
from scheduling.models import CycleRecord, Decision, Quota, State
from scheduling.services.cycle import run as cycles
from scheduling.services.cycle.run import CycleResult
from scheduling.services.snapshot import starts_under_way
from scheduling.services.snapshot.situations import Situation, WorkloadFacts
from scheduling.services.snapshot.starts_under_way import ON_ITS_WAY, slow_starts, suppose
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.scheduling.auditing import audited
from tests.scheduling.killing import KilledError, restart
from tests.scheduling.kube import World, eventually

S = State
HELD_UP_S = 120.0


@dataclass
class Gate:
    """Holds up writes of the Jobs ``shut`` until it is ``open``; then they go through, or end as ``then``."""

    shut: set[str] = field(default_factory=set)
    opened: threading.Event = field(default_factory=threading.Event)
    then: BaseException | None = None

    def open(self, then: BaseException | None = None) -> None:
        self.then = then
        self.opened.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made, request = Gate(), Client.request

    def held_up(self: Client, method: str, path: str, **more: Any) -> Any:
        if method == "PUT" and path.rpartition("/")[2] in made.shut:
            assert made.opened.wait(HELD_UP_S)
            if made.then is not None:
                raise made.then
        return request(self, method, path, **more)

    monkeypatch.setattr(Client, "request", held_up)
    yield made
    made.opened.set()


@pytest.fixture(autouse=True)
def nothing_exceeded(world: World) -> Iterator[None]:
    Quota.objects.update(borrowing_limit_gpus=8000)
    world.cycle()
    with audited(world):
        yield


def hurried(world: World) -> CycleResult:
    """A cycle during which the next one is called for."""
    worker = workers._turns[world.cluster.pk]
    worker.call.is_due = lambda: True  # type: ignore[method-assign] # until ``worker`` is closed
    world.catch_up()
    return run_cycle(world.cluster.pk)


def is_started(world: World, name: str) -> bool:
    return not world.read(name)["spec"]["suspend"]


def started(world: World, *names: str) -> bool:
    return all(is_started(world, name) for name in names)


def starts_of(world: World, name: str) -> int:
    return Decision.objects.filter(workload=world.row(name), action="admit").count()


def test_start_that_hangs_keeps_its_gpus_and_holds_up_no_other(world: World, gate: Gate) -> None:
    gate.shut = {"slow"}
    world.job("slow", gpus=8)
    hurried(world)
    for name in ("early", "late"):
        world.job(name, gpus=8)
    hurried(world)

    eventually(lambda: is_started(world, "early"))
    assert not started(world, "slow")
    assert not started(world, "late")
    assert (world.row("slow").state, world.row("late").state) == (S.PENDING, S.PENDING)
    assert [starts_of(world, name) for name in ("slow", "early", "late")] == [1, 1, 0]

    gate.open()
    world.cycles_until(lambda: world.row("slow").state == S.RUNNING)
    assert [starts_of(world, name) for name in ("slow", "early", "late")] == [1, 1, 0]
    assert world.states("slow") == [S.PENDING, S.ADMITTED, S.RUNNING]


def test_refused_start_waits_again_with_its_reason_and_others_have_its_gpus(
    world: World, gate: Gate
) -> None:
    gate.shut = {"refused"}
    world.job("refused", gpus=8, pods=2)
    hurried(world)
    world.job("other", gpus=8, pods=2)
    hurried(world)
    assert starts_of(world, "other") == 0

    gate.open(InvalidError(422, "Invalid", "a webhook says no"))
    # The next plan may be made between the answer and its being heard of: the one after it tells.
    world.cycles_until(
        lambda: started(world, "other") and "a webhook says no" in world.row("refused").sentence
    )
    row = world.row("refused")
    assert (row.state, row.reason) == (S.PENDING, "never_fits")


def test_worker_that_is_killed_with_a_start_on_its_way_starts_nothing_twice(
    world: World, gate: Gate
) -> None:
    gate.shut = {"slow"}
    world.job("slow", gpus=8)
    hurried(world)
    world.job("early", gpus=8)
    hurried(world)

    gate.open(KilledError())
    restart(world)
    gate.shut = set()
    world.cycles_until(lambda: {world.row(n).state for n in ("slow", "early")} == {S.RUNNING})
    for name in ("slow", "early"):
        assert world.states(name) == [S.PENDING, S.ADMITTED, S.RUNNING]


def test_job_that_is_edited_while_its_start_is_on_its_way_is_planned_anew(
    world: World, gate: Gate
) -> None:
    gate.shut = {"w1"}
    world.job("w1", gpus=2)
    hurried(world)
    world.edit("w1", {"spec": {"parallelism": 3, "completions": 3}})
    gate.open()
    eventually(lambda: not workers._turns[world.cluster.pk].link.enforcer.starts)
    assert not started(world, "w1")

    world.cycles_until(lambda: world.row("w1").members == 3)
    assert started(world, "w1")


def test_no_more_starts_are_on_their_way_than_a_cycle_may_make(
    world: World, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles, "ADMISSIONS", 2)
    gate.shut = {"w0", "w1"}
    for i in range(3):
        world.job(f"w{i}")
    hurried(world)
    hurried(world)
    assert [starts_of(world, f"w{i}") for i in range(3)] == [1, 1, 0]
    assert world.row("w2").reason == "waits_for_turn"

    gate.open()
    world.cycles_until(lambda: started(world, "w0", "w1", "w2"))


def test_who_waits_long_for_its_start_is_told_and_nothing_else_is_written_of_it(
    world: World, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts_under_way, "SLOW", timedelta(0))
    gate.shut = {"slow"}
    world.job("slow", gpus=8)
    hurried(world)
    hurried(world)
    assert world.row("slow").sentence == ON_ITS_WAY
    assert "weir.dev/sentence" not in world.notes("slow")
    gate.open()


def test_record_of_a_cycle_tells_of_the_starts_that_it_left(world: World, gate: Gate) -> None:
    gate.shut = {"slow"}
    world.job("slow", gpus=8)
    number = hurried(world).number
    record = CycleRecord.objects.get(cycle__number=number)
    assert (record.written, record.writes) == (0, [])

    gate.open()
    world.cycles_until(lambda: CycleRecord.objects.get(pk=record.pk).writes)
    record.refresh_from_db()
    assert (record.written, [write["name"] for write in record.writes]) == (1, ["slow"])


def waiting() -> Sighting:
    meta = {"namespace": "n", "name": "w", "uid": "u", "resourceVersion": "1"}
    job = {
        "metadata": {**meta, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"suspend": True, "template": {"spec": {"containers": []}}},
    }
    return JobAdapter().observe(job, [], [])


def pictured(*workloads: Sighting) -> Picture:
    return Picture(workloads, (), {o.uid: o for o in workloads})


@pytest.mark.parametrize(
    ("situation", "counts_as"),
    [
        (Situation.WAITING, Situation.HOLDING),
        (Situation.HOLDING, Situation.HOLDING),
        (Situation.BYPASSING, Situation.BYPASSING),
        (Situation.LEAVING, Situation.LEAVING),
        (Situation.MOVING, Situation.MOVING),
        (Situation.DONE, Situation.DONE),
    ],
)
def test_start_under_way_counts_as_made_until_the_cluster_shows_more(
    situation: Situation, counts_as: Situation
) -> None:
    seen, known = waiting(), {"u": WorkloadFacts(situation)}
    begun = replace(seen, suspended=False, admitted=datetime(2026, 1, 1, tzinfo=UTC))
    found = suppose(pictured(seen), known, {"u": begun})

    is_supposed = situation is Situation.WAITING
    assert found.known["u"].situation is counts_as
    assert found.known["u"].is_supposed == is_supposed
    assert found.picture.workloads == (found.picture.by_uid["u"],)
    assert found.picture.by_uid["u"] is (begun if is_supposed else seen)
    assert known == {"u": WorkloadFacts(situation)}


def test_start_of_what_is_gone_counts_for_nothing() -> None:
    picture = pictured()
    found = suppose(picture, {}, {"u": waiting()})
    assert (found.picture, found.known, found.starting) == (picture, {}, {})


def test_only_starts_that_take_long_are_told() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    quick = replace(waiting(), name="quick", admitted=now - timedelta(seconds=1))
    slow = replace(waiting(), name="slow", admitted=now - timedelta(seconds=3))
    assert [decision.workload for decision in slow_starts([quick, slow], now)] == ["n/slow"]
