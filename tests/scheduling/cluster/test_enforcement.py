"""Whom a cycle waits for: acts always, starts and words of a long line only while nothing else calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from scheduling.cluster.adapters import JobAdapter
from scheduling.cluster.connection.client import Client, InvalidError
from scheduling.cluster.connection.lease import Lease, LeaseLostError
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.enforcement import starts as starts_module
from scheduling.cluster.enforcement.enforcer import TELLING, WORDS, Act, Enforcer
from tests.scheduling.kube import eventually

JOBS = JobAdapter()


@dataclass
class SlowClient:
    """Answers a write when it is ``open``, but never one of the ``stuck`` before ``freed``."""

    open: threading.Event = field(default_factory=threading.Event)
    freed: threading.Event = field(default_factory=threading.Event)
    stuck: frozenset[str] = frozenset()
    refuses: str = ""
    written: list[str] = field(default_factory=list)

    def replace(self, path: str, body: Any) -> Any:
        assert self.open.wait(60)
        if body["metadata"]["name"] in self.stuck:
            assert self.freed.wait(60)
        if self.refuses:
            raise InvalidError(422, "Invalid", self.refuses)
        self.written.append(path)
        version = str(int(body["metadata"]["resourceVersion"]) + 1)
        return {**body, "metadata": {**body["metadata"], "resourceVersion": version}}


class Held:
    def check(self) -> None:
        pass


@dataclass
class Desk:
    """An enforcer of Jobs that are mirrored already."""

    client: SlowClient = field(default_factory=SlowClient)

    def __post_init__(self) -> None:
        client = cast(Client, self.client)
        self.called = 0
        resources = {JOBS.kind: (JOBS.list_path, JOBS.trim)}
        self.mirror = Mirror(client, resources, on_change=self._call)
        self.enforcer = Enforcer(client, self.mirror, cast(Lease, Held()), self._call)

    def _call(self) -> None:
        self.called += 1

    def act(self, number: int) -> Act:
        name = f"j{number}"
        meta = {"namespace": "n", "name": name, "uid": name, "resourceVersion": "1"}
        job = {
            "metadata": {**meta, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"suspend": True, "template": {"spec": {"containers": []}}},
        }
        self.mirror[JOBS.kind].absorb(job)
        target = JOBS.observe(job, [], [])
        return Act(JOBS, target, lambda obj: {"metadata": {"annotations": {"told": "yes"}}})

    def acts(self, number: int) -> list[Act]:
        return [self.act(i) for i in range(number)]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.client.open.set()
    made.client.freed.set()
    made.enforcer.close()


def test_words_of_a_long_line_do_not_hold_up_a_waiting_cycle(desk: Desk) -> None:
    desk.enforcer.carry_out([], desk.acts(2 * WORDS), is_called=lambda: True)
    assert desk.client.written == []

    desk.client.open.set()
    desk.enforcer.carry_out([])
    assert len(desk.client.written) == WORDS


def test_all_words_are_waited_for_when_no_cycle_is(desk: Desk) -> None:
    desk.client.open.set()
    report = desk.enforcer.carry_out([], desk.acts(2 * WORDS))
    assert report.written == len(desk.client.written) == 2 * WORDS


def test_acts_are_waited_for_even_when_a_cycle_waits(desk: Desk) -> None:
    desk.client.open.set()
    report = desk.enforcer.carry_out([desk.acts(WORDS)], is_called=lambda: True)
    assert report.written == WORDS


def test_pace_is_that_of_the_last_plan_with_many_acts(desk: Desk) -> None:
    desk.client.open.set()
    desk.enforcer.carry_out([desk.acts(TELLING - 1)])
    assert desk.enforcer.writable(1000) == 0

    desk.enforcer.carry_out([desk.acts(TELLING)])
    pace = desk.enforcer.writable(1000)
    desk.enforcer.carry_out([desk.acts(1)])
    assert desk.enforcer.writable(1000) == pace > 0


def test_written_acts_call_for_a_cycle_unless_the_plan_foresaw_them(desk: Desk) -> None:
    desk.client.open.set()
    foreseen, other = desk.acts(2)
    desk.enforcer.carry_out([[replace(foreseen, is_foreseen=True)]])
    assert desk.called == 0

    desk.enforcer.carry_out([[other]])
    assert desk.called == 1


def test_report_tells_words_from_acts(desk: Desk) -> None:
    desk.client.open.set()
    act, *words = desk.acts(4)
    report = desk.enforcer.carry_out([[act]], words)
    assert (report.written, report.said) == (4, 3)


def test_act_that_cannot_read_its_object_fails_alone(desk: Desk) -> None:
    def confused(obj: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"annotations": obj["spec"]["nothing"]["there"]}}

    desk.client.open.set()
    odd, good = desk.acts(2)
    report = desk.enforcer.carry_out([[replace(odd, decide=confused), good]])

    assert report.written == 1
    assert report.failed == {"n/j0": "Weir cannot read it: KeyError: 'nothing'"}
    assert report.refused["j0"] == (odd.target.generation, report.failed["n/j0"])


def starts(desk: Desk, number: int) -> list[Act]:
    """Acts that plans may count on."""
    return [
        replace(act, becomes=act.target, is_foreseen=True, purpose="start")
        for act in desk.acts(number)
    ]


def called() -> bool:
    return True


def test_start_is_left_on_its_way_when_a_cycle_is_called_for(desk: Desk) -> None:
    report = desk.enforcer.carry_out([starts(desk, 2)], is_called=called)
    assert (report.written, report.writes) == (0, [])
    assert set(desk.enforcer.starts.under_way()) == {"j0", "j1"}

    desk.client.open.set()
    eventually(lambda: not desk.enforcer.starts)
    assert eventually(lambda: desk.enforcer.heard().written) > 0


def test_start_is_waited_for_while_no_cycle_is_called_for(desk: Desk) -> None:
    threading.Timer(0.1, desk.client.open.set).start()
    report = desk.enforcer.carry_out([starts(desk, 2)])
    assert (report.written, desk.enforcer.heard().written) == (2, 0)


def test_acts_on_others_do_not_stand_in_line_behind_starts_that_hang(desk: Desk) -> None:
    desk.client.stuck = frozenset(f"j{number}" for number in range(20))
    desk.client.open.set()
    *hanging, other = desk.acts(21)
    hanging = [replace(act, becomes=act.target) for act in hanging]
    desk.enforcer.carry_out([hanging], is_called=called)

    assert desk.enforcer.carry_out([[other]], is_called=called).written == 1
    assert len(desk.enforcer.starts) == 20


def test_start_under_way_is_not_sent_twice(desk: Desk) -> None:
    acts = starts(desk, 1)
    desk.enforcer.carry_out([acts], is_called=called)
    desk.enforcer.carry_out([acts], is_called=called)
    desk.client.open.set()
    eventually(lambda: not desk.enforcer.starts)
    assert len(desk.client.written) == 1


def test_mirror_holds_a_start_before_it_is_under_way_no_more(desk: Desk) -> None:
    """Whoever asks what is under way and then looks at the mirror finds it in one of them."""
    desk.enforcer.carry_out([starts(desk, 64)], is_called=called)
    desk.client.open.set()
    while desk.enforcer.starts:
        under_way = desk.enforcer.starts.under_way()
        told = {o["metadata"]["name"] for o in desk.mirror["Job"].objects() if is_told(o)}
        assert under_way.keys() | told == {f"j{number}" for number in range(64)}


def is_told(obj: dict[str, Any]) -> bool:
    return bool(obj["metadata"].get("annotations"))


def test_start_that_was_left_and_is_refused_calls_for_a_cycle_and_is_reported(desk: Desk) -> None:
    desk.client.refuses = "quota exceeded"
    desk.enforcer.carry_out([starts(desk, 1)], is_called=called)
    desk.client.open.set()
    eventually(lambda: desk.called)

    report = desk.enforcer.heard()
    assert report.failed == {"n/j0": "quota exceeded"}
    assert report.refused == {"j0": (0, "quota exceeded")}
    assert desk.enforcer.heard().failed == {}


def test_starts_that_were_left_call_for_a_cycle_each_time_half_of_them_have_ended(
    desk: Desk,
) -> None:
    desk.enforcer.carry_out([starts(desk, 64)], is_called=called)
    desk.client.open.set()
    eventually(lambda: not desk.enforcer.starts)
    eventually(lambda: desk.enforcer.heard().written == 0)
    assert 1 <= desk.called <= 8


def test_start_that_waits_too_long_to_be_sent_is_planned_anew(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts_module, "STALE_S", 0.0)
    desk.client.open.set()
    report = desk.enforcer.carry_out([starts(desk, 1)])
    assert (report.written, report.dropped, desk.client.written) == (0, 1, [])


def test_lost_lease_withdraws_the_starts_that_were_not_sent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: object) -> None:
        raise LeaseLostError("held by another worker")

    monkeypatch.setattr(Held, "check", lost)
    with pytest.raises(LeaseLostError):
        desk.enforcer.carry_out([starts(desk, 64)])
    eventually(lambda: not desk.enforcer.starts)
    assert desk.client.written == []
