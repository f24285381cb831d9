"""Whom a cycle waits for: acts always, words of a long line only while nothing else calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from scheduling.cluster.adapters import JobAdapter
from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.lease import Lease
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.enforcement.enforcer import TELLING, WORDS, Act, Enforcer

JOBS = JobAdapter()


@dataclass
class SlowClient:
    """Answers a write when it is ``open``."""

    open: threading.Event = field(default_factory=threading.Event)
    written: list[str] = field(default_factory=list)

    def replace(self, path: str, body: Any) -> Any:
        assert self.open.wait(5)
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
        self.enforcer = Enforcer(client, self.mirror, cast(Lease, Held()))

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
