"""Rivals on a past period of a cluster, in worlds small enough to be reckoned by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine import model as m
from scheduling.simulation.ahead import rivals
from scheduling.simulation.ahead.period import Period
from scheduling.simulation.ahead.rivals import Pool, can_live, pools_of, waited_s
from scheduling.simulation.rivals.registry import RULES
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.simulation.ahead.test_forward import H100, NOW, workload, world


def period(*jobs, hours=10):
    until = NOW + timedelta(hours=hours)
    return Period(NOW, NOW, until, jobs, (True,) * len(jobs))


def job(name, run_s, *, after_s=0, gpus=8, **more):
    work = workload(name, gpus, submitted=NOW + timedelta(seconds=after_s), **more)
    return Submission(work, run_s)


def test_native_scheduler_has_the_second_wait_for_the_first():
    lived = waited_s(world(), period(job("a", 600), job("b", 60, after_s=10)), RULES["native"])
    first, second = lived.tolist()
    assert first == 0
    # Whoever is parked comes back once GPUs are freed, after a back-off of 10 s at most.
    assert 590 <= second <= 600


def test_gittins_has_one_that_is_alone_wait_for_its_next_look_at_most():
    assert waited_s(world(), period(job("a", 600)), RULES["gittins"]).max() <= 60


def test_wait_ends_with_the_period():
    lived = waited_s(world(), period(job("a", 90_000), job("b", 60)), RULES["native"])
    assert lived.tolist() == [0, 36_000]


def test_classes_are_lived_each_by_itself():
    made = world()
    other = replace(
        made,
        gpu_classes=(*made.gpu_classes, m.GpuClass("l4")),
        nodes=(*made.nodes, m.Node("node-9", "l4", 4 * m.MILLI)),
    )
    cheap = job("b", 60, gpus=4)
    cheap = replace(cheap, workload=replace(cheap.workload, gpu_classes=("l4",)))
    jobs = period(job("a", 600), cheap)
    assert waited_s(other, jobs, RULES["native"]).tolist() == [0, 0]
    assert pools_of(other) == {H100: Pool(1, 8), "l4": Pool(1, 4)}


@pytest.mark.parametrize(
    ("node", "pools"),
    [
        ({}, {H100: Pool(1, 8)}),
        ({"ready": False}, {}),
        ({"dedicated": True}, {}),
        ({"foreign_gpus": 2 * m.MILLI}, {H100: Pool(1, 6)}),
    ],
)
def test_pool_has_what_work_may_use(node, pools):
    made = world()
    assert pools_of(replace(made, nodes=(replace(made.nodes[0], **node),))) == pools


@pytest.mark.parametrize(("gpus", "can"), [(8, True), (9, False)])
def test_work_larger_than_its_class_is_not_lived(gpus, can):
    assert can_live(world(), period(job("a", 60, gpus=gpus))) is can


def test_too_much_work_is_not_lived(monkeypatch):
    monkeypatch.setattr(rivals, "MOST_JOBS", 1)
    assert not can_live(world(), period(job("a", 60), job("b", 60)))


def test_part_of_a_gpu_takes_a_whole_one():
    half = job("a", 60)
    assert rivals.gpus_of(replace(half, workload=replace(half.workload, gpus=500))) == 1
