"""Changing work while it waits: what is written to its object; what is refused, with what can be done."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduling.cluster.vocabulary import labels
from scheduling.models import EditKind, State
from scheduling.services.errors import ServiceError
from scheduling.services.workloads import edits
from scheduling.services.workloads.change import WorkloadChange, apply, draft
from tests.scheduling.kube import JOBS, World


def waits(world: World, **asked: Any) -> None:
    """A Job that fits nowhere, so that it waits."""
    world.job("w1", **({"gpus": 8, "pods": 9, "run_time_limit_s": 3600} | asked))
    world.cycles_until(lambda: world.row("w1").state == State.PENDING)


def test_job_is_changed_in_its_own_fields_and_keeps_its_submit_time(world: World) -> None:
    waits(world)
    before = world.row("w1").submitted_at
    wanted = WorkloadChange(run_time_limit_s=7200, gpus_per_pod=4, pods_min=2, pods_max=3)
    apply(world.row("w1"), wanted, user="ann")

    spec = world.read("w1")["spec"]
    assert (spec["activeDeadlineSeconds"], spec["parallelism"], spec["completions"]) == (7200, 3, 3)
    limits = spec["template"]["spec"]["containers"][0]["resources"]
    assert limits["limits"]["nvidia.com/gpu"] == limits["requests"]["nvidia.com/gpu"] == "4"
    world.cycles_until(lambda: world.row("w1").gpus == 4000)
    row = world.row("w1")
    assert (row.min_members, row.max_members, row.run_time_limit_s) == (2, 3, 7200)
    assert row.submitted_at == before


def test_change_lets_it_start(world: World) -> None:
    waits(world)
    apply(world.row("w1"), WorkloadChange(pods_min=1), user="ann")
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    assert world.row("w1").max_members == 1


def test_what_has_no_field_is_an_annotation_and_goes_again(world: World) -> None:
    waits(world)
    at = world.cluster.now().replace(microsecond=0) + timedelta(hours=5)
    apply(world.row("w1"), WorkloadChange(not_before=at, after=("a", "b:ended")), user="ann")
    notes = world.notes("w1")
    assert datetime.fromisoformat(notes[labels.NOT_BEFORE]) == at
    assert notes[labels.AFTER] == "a,b:ended"
    apply(world.row("w1"), WorkloadChange(not_before="", after=(), run_time_limit_s=0), user="ann")
    assert labels.TURN.isdisjoint(world.notes("w1"))
    assert "activeDeadlineSeconds" not in world.read("w1")["spec"]


def test_draft_writes_nothing(world: World) -> None:
    waits(world)
    made = draft(world.row("w1"), WorkloadChange(gpus_per_pod=1))
    assert (made.before.gpus, made.after.gpus) == (8000, 1000)
    assert made.after.created == made.before.created
    resources = world.read("w1")["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == "8"


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (WorkloadChange(), "nothing_to_change", None),
        (WorkloadChange(pods_min=4, pods_max=2), "max_below_min", "pods_max"),
        (WorkloadChange(after=("No Name",)), "invalid", "after"),
    ],
)
def test_refusal_names_the_field(
    world: World, change: WorkloadChange, code: str, field: str | None
) -> None:
    waits(world)
    with pytest.raises(ServiceError) as refused:
        draft(world.row("w1"), change)
    assert (refused.value.code, refused.value.field) == (code, field)


def test_what_runs_is_not_changed(world: World) -> None:
    world.job("w1", gpus=1)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    with pytest.raises(ServiceError) as refused:
        apply(world.row("w1"), WorkloadChange(gpus_per_pod=2), user="ann")
    assert refused.value.code == "not_waiting"


def test_what_was_let_go_since_the_row_was_read_is_not_changed(world: World) -> None:
    waits(world)
    row = world.row("w1")
    world.edit("w1", {"spec": {"suspend": False}})
    with pytest.raises(ServiceError) as refused:
        apply(row, WorkloadChange(gpus_per_pod=2), user="ann")
    assert refused.value.code == "not_waiting"


def test_another_object_of_its_name_is_left_alone(world: World) -> None:
    waits(world)
    row = world.row("w1")
    world.kube.delete(f"{JOBS}/w1")
    world.job("w1", gpus=8, pods=9)
    with pytest.raises(ServiceError) as refused:
        apply(row, WorkloadChange(gpus_per_pod=2), user="ann")
    assert refused.value.code == "gone"


def test_cycle_says_what_became_otherwise_and_the_door_by_whom(world: World) -> None:
    waits(world)
    apply(world.row("w1"), WorkloadChange(run_time_limit_s=7200, gpus_per_pod=4), user="ann")
    (edit,) = world.row("w1").edits.all()
    assert (edit.kind, edit.actor, edit.before) == (EditKind.CHANGED, "ann", None)

    world.cycles_until(lambda: world.row("w1").gpus == 4000)
    (edit,) = world.row("w1").edits.all()
    assert edit.actor == "ann"
    assert edit.before == {"gpus": 8000, "run_time_limit_s": 3600}
    assert edit.after == {"gpus": 4000, "run_time_limit_s": 7200}


def test_what_is_changed_on_the_cluster_is_noted_without_a_name(world: World) -> None:
    waits(world)
    world.edit("w1", {"metadata": {"annotations": {labels.HOLD: "true"}}})
    world.cycles_until(lambda: world.row("w1").held)
    (edit,) = world.row("w1").edits.all()
    assert (edit.actor, edit.before, edit.after) == ("", {"held": False}, {"held": True})


def test_cycle_between_the_clusters_answer_and_the_note_leaves_one_line_with_the_name(
    world: World,
) -> None:
    waits(world)
    world.edit("w1", {"metadata": {"annotations": {labels.HOLD: "true"}}})
    world.cycles_until(lambda: world.row("w1").held)
    edits.note("work.held", world.row("w1"), "ann")
    (edit,) = world.row("w1").edits.all()
    assert (edit.actor, edit.kind, edit.before) == ("ann", EditKind.HELD, {"held": False})
