"""Work that its author has wait: for a time, for the end of other work, behind members of its array."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.adapters import turns as notes
from scheduling.cluster.adapters.turns import NO_TURN, After, Turn
from scheduling.cluster.vocabulary import labels
from scheduling.models import Outcome, State, Workload
from scheduling.services.snapshot.situations import Situation, WorkloadFacts
from scheduling.services.snapshot.turns import not_their_turn
from scheduling.services.workloads import submit
from scheduling.services.workloads.turns import kept_back
from tests.scheduling.kube import JOBS, World
from tests.scheduling.services.test_at_once import Row, work

AT = datetime(2026, 1, 5, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "turn"),
    [
        ({}, NO_TURN),
        ({labels.NOT_BEFORE: "2026-01-05T19:00:00+01:00"}, Turn(not_before=AT)),
        ({labels.AFTER: "a, b:ended,a"}, Turn(after=(After("a"), After("b", success=False)))),
        ({labels.AFTER: "jobset/a:succeeded"}, Turn(after=(After("jobset/a"),))),
        (
            {labels.ARRAY: "sweep", labels.ARRAY_INDEX: "7", labels.ARRAY_AT_ONCE: "2"},
            Turn(array="sweep", index=7, at_once=2),
        ),
    ],
)
def test_annotations_say_when_work_starts(said: dict[str, str], turn: Turn) -> None:
    assert notes.read(said) == turn
    assert notes.fault(said) == ""
    assert bool(turn) == bool(said)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ({labels.NOT_BEFORE: "tonight"}, "Write one such as"),
        ({labels.AFTER: "a:failed"}, "train-a:ended"),
        ({labels.AFTER: "Not A Name"}, "train-a:ended"),
        ({labels.AFTER: ",".join(f"w{n}" for n in range(21))}, "one of them start after"),
        ({labels.ARRAY: "x" * 64}, "at most 63"),
        ({labels.ARRAY: "sweep", labels.ARRAY_AT_ONCE: "0"}, "from 1 on"),
    ],
)
def test_nonsense_is_a_fault_with_its_remedy(said: dict[str, str], remedy: str) -> None:
    assert notes.read(said) == NO_TURN
    assert remedy in notes.fault(said)


def row(name: str, state: State, outcome: str = "", queue: str = "vision") -> Workload:
    return Workload(name=name, namespace="vision", state=state, outcome=outcome, queue_label=queue)


def said_of(*works: Row, rows: tuple[Workload, ...] = ()) -> dict[str, str]:
    found = not_their_turn(
        [o for o, _ in works],
        {o.uid: known for o, known in works},
        {f"vision/{one.name}": one for one in rows},
    )
    return {o.name: why.sentence for o, why in found}


def after(name: str, *names: str, **more: Any) -> Row:
    others = tuple(After(n.removesuffix(":ended"), not n.endswith(":ended")) for n in names)
    return work(name, 1, turn=Turn(after=others), **more)


@pytest.mark.parametrize(
    ("wants", "other", "said"),
    [
        ("a", row("a", State.RUNNING), "after a has succeeded, which is running now"),
        ("a", row("a", State.PENDING), "after a has succeeded, which is pending now"),
        ("a", row("a", State.FINISHED, Outcome.SUCCEEDED), None),
        ("a", row("a", State.FINISHED, Outcome.FAILED), "and a failed. Change"),
        ("a", row("a", State.FINISHED, Outcome.CANCELLED), "and a was cancelled. Change"),
        ("a:ended", row("a", State.RUNNING), "after a has ended, which is running now"),
        ("a:ended", row("a", State.FINISHED, Outcome.FAILED), None),
        ("a", None, "no such workload"),
        ("a", row("a", State.FINISHED, Outcome.SUCCEEDED, "search"), "no such workload"),
    ],
)
def test_work_starts_after_other_work(wants: str, other: Workload | None, said: str | None) -> None:
    found = said_of(after("w", wants), rows=(other,) if other else ())
    if said is None:
        assert found == {}
    else:
        assert said in found["w"]


def test_circle_is_told_to_each_of_it_and_to_nobody_else() -> None:
    waits = row("a", State.PENDING)
    found = said_of(
        after("a", "b"), after("b", "a"), after("c", "a"), after("d", "d"), rows=(waits,)
    )
    assert {name for name, said in found.items() if "none of them ever would" in said} == {
        "a",
        "b",
        "d",
    }
    assert "which is pending now" in found["c"]


def member(index: int, situation: Situation = Situation.WAITING, most: int = 2) -> Row:
    turn = Turn(array="sweep", index=index, at_once=most)
    return work(f"sweep-{index}", 1, situation, turn=turn)


def test_so_many_members_of_an_array_hold_gpus_at_once() -> None:
    found = said_of(member(10), member(2), member(3), member(1, Situation.HOLDING))
    assert set(found) == {"sweep-3", "sweep-10"}
    assert "number 3 of the array sweep, of which 2 may run at once" in found["sweep-3"]


def test_member_whose_pods_are_going_counts_and_one_that_is_done_does_not() -> None:
    assert set(said_of(member(2, most=1), member(1, Situation.LEAVING, 1))) == {"sweep-2"}
    assert said_of(member(2, most=1), member(1, Situation.DONE, 1)) == {}


def test_held_member_takes_no_place_in_its_array() -> None:
    held, known = member(1, most=1)
    assert said_of((held, known), member(2, most=1)).keys() == {"sweep-2"}
    alone = work("sweep-1", 1, turn=held.turn, hold=True)
    assert said_of(alone, member(2, most=1)) == {}


def test_what_is_no_row_of_the_cycle_yet_is_left_alone() -> None:
    observed, _ = after("w", "a")
    assert not_their_turn([observed], {}, {}) == []
    assert not_their_turn([observed], {"w": WorkloadFacts(Situation.HOLDING)}, {}) == []


def create(world: World, name: str, **said: str) -> None:
    manifest = world.manifest(name)
    notes_ = {labels.__dict__[key]: value for key, value in said.items()}
    manifest["metadata"]["annotations"] |= notes_
    world.kube.create(JOBS, manifest)


def test_work_not_before_a_time_waits_and_says_until_when(world: World) -> None:
    create(world, "late", NOT_BEFORE=(world.cluster.now() + timedelta(days=1)).isoformat())
    create(world, "past", NOT_BEFORE=(world.cluster.now() - timedelta(days=1)).isoformat())
    world.cycles_until(lambda: world.row("past").state == State.RUNNING)
    late = world.row("late")
    assert (late.state, late.reason) == (State.PENDING, "not_before")
    assert "no sooner than" in world.notes("late")[labels.SENTENCE]
    assert late.turn["not_before"]


def test_work_runs_after_other_work_has_ended_in_the_cluster(world: World) -> None:
    create(world, "second", AFTER="first")
    world.cycles_until(lambda: "no such workload" in world.row("second").sentence)
    world.job("first", run_s=0.3)
    world.cycles_until(lambda: world.row("first").state == State.FINISHED)
    world.cycles_until(lambda: world.row("second").state == State.RUNNING)


def test_members_of_an_array_run_one_after_the_other(world: World) -> None:
    for index in range(3):
        create(world, f"sweep-{index}", ARRAY="sweep", ARRAY_INDEX=str(index), ARRAY_AT_ONCE="1")
    world.cycles_until(lambda: world.row("sweep-0").state == State.RUNNING)
    assert [world.row(f"sweep-{n}").reason for n in (1, 2)] == ["array_at_limit"] * 2
    world.kube.delete(f"{JOBS}/sweep-0")
    world.cycles_until(lambda: world.row("sweep-1").state == State.RUNNING)
    assert world.row("sweep-2").reason == "array_at_limit"


def test_member_that_would_be_let_in_waits_for_those_before_it(world: World) -> None:
    for index in range(1, 5):
        create(world, f"sweep-{index}", ARRAY="sweep", ARRAY_INDEX=str(index), ARRAY_AT_ONCE="2")
    world.cycles_until(lambda: world.row("sweep-2").state == State.RUNNING)
    third, fourth = (submit.observed(world.row(f"sweep-{index}")) for index in (3, 4))

    def kept_back_of(member: Sighting) -> object:
        return kept_back(world.cluster, replace(member, turn=replace(member.turn, at_once=3)))

    assert kept_back_of(third) is None
    assert kept_back_of(fourth) is not None
