"""Worlds of a cluster, embedded or real, through the whole cycle: once those who left are gone and those they
left for run, a cycle evicts nobody and starts nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from scheduling.engine import Action, Plan, Snapshot
from scheduling.models import Cluster
from tests.scheduling.engine.evolve import acts, without_prompt_starts
from tests.scheduling.engine.lives import TAKES, Finding
from tests.scheduling.engine.second_plans import STATED, cause
from tests.scheduling.kube import World
from tests.scheduling.lives import Life, begun

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
WORLDS = 300 if NIGHTLY else 25
MOST_CYCLES = 30


@pytest.fixture
def life(world: World) -> Iterator[Life]:
    with begun(world, 3) as drawn:
        Cluster.objects.update(cooldown_s=600)
        yield drawn


def test_cycle_does_nothing_once_all_who_left_are_gone(life: Life) -> None:
    evicted = 0
    for _ in range(WORLDS):
        _something_happens(life)
        first = len(life.lived)
        _let_all_leave(life)
        course = life.lived[first:]
        evicted += sum(d.action is Action.EVICT for d in course[0][1].decisions)
        assert _faults(course) == []
    assert evicted >= WORLDS // 10  # Else nobody's leaving was put to the test.


def _something_happens(life: Life) -> None:
    """Work ends or is cancelled, and more comes."""
    life.dice.choice((life.end, life.end, life.cancel))()
    for _ in range(life.dice.randint(1, 3)):
        life.dice.choice((life.come, life.come, life.come_urgent))()


def _let_all_leave(life: Life) -> None:
    """A cycle after each that leaves, until one finds nobody who does, and another."""
    life.cycle()
    for _ in range(MOST_CYCLES):
        life.cycle()
        if not any(work.leaving for work in life.lived[-1][0].workloads):
            break
        life.leave()
    life.cycle()
    life.cycle()


def _faults(course: list[tuple[Snapshot, Plan]]) -> list[str]:
    """What plans after the first take, and the last does at all, but where shares and gangs contradict each
    other."""
    for number, (at, made) in enumerate(course[1:], 2):
        done = [d for d in made.decisions if d.action in TAKES]
        if number == len(course):
            done += [d for d in without_prompt_starts(at, acts(made)) if d not in done]
        if done:
            told = [f"{d.action} {d.workload} for {d.for_workload}: {d.sentence}" for d in done]
            return [] if cause(Finding("later", done, course[:number])) in STATED else told
    return []
