"""The frame kept up in place, and what a snapshot must not say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import numpy as np
import pytest

from scheduling.engine import (
    Frame,
    GpuClass,
    Members,
    Node,
    NodeSet,
    Phase,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    SnapshotError,
    Workload,
    encode,
    plan,
    plan_frame,
)
from scheduling.engine.state.units import RUNNING
from workshop.simulator.carry_out import carry_out

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


def _cluster(nodes: int = 2) -> Snapshot:
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(Node(f"n{i}", "h100", 8000) for i in range(nodes)),
        queues=(Queue("a", quotas={"h100": Quota(8000)}), Queue("b", quotas={"h100": Quota(8000)})),
        priority_classes=(PriorityClass("train"),),
    )


def _add(frame: Frame, queue: str, gpus: int, members: int = 1, user: str = "") -> int:
    return frame.add_workload(
        queue=frame.queue_names.index(queue),
        submitted=frame.now,
        gpus=1000 * gpus,
        members=(members, members),
        user=user,
    )


def test_slot_of_a_finished_workload_is_used_again() -> None:
    frame = encode(_cluster())
    first = _add(frame, "a", 8)
    carry_out(frame, plan_frame(frame))
    frame.finish(first)

    second = _add(frame, "b", 8)

    assert second == first
    assert plan_frame(frame).admitted() == [second]


def test_frame_grows_past_its_first_size() -> None:
    frame = encode(_cluster(40))
    slots = [_add(frame, "ab"[i % 2], 1, user=f"u{i}") for i in range(300)]

    made = plan_frame(frame)
    carry_out(frame, made)

    assert sorted(made.admitted()) == slots
    assert plan_frame(frame).admitted() == []


def test_gangs_of_many_small_shares_find_room_for_all_their_seats() -> None:
    frame = encode(_cluster(2))
    for _ in range(16):
        frame.add_workload(queue=1, submitted=frame.now, gpus=10, members=(90, 90))

    made = plan_frame(frame)

    assert len(made.admitted()) == 16
    assert {len(made.seats(slot)) for slot in made.admitted()} == {90}


def test_evicted_workload_is_pending_again_and_starts_later() -> None:
    frame = encode(_cluster(1))
    lent = [_add(frame, "a", 4), _add(frame, "a", 4)]
    carry_out(frame, plan_frame(frame))
    late = _add(frame, "b", 4)
    made = plan_frame(frame)

    [victim] = made.evicted()
    assert victim in lent
    assert made.promised() == [late]
    carry_out(frame, made)
    again = plan_frame(frame)
    assert again.admitted() == [late]
    carry_out(frame, again)
    frame.finish(late)
    assert plan_frame(frame).admitted() == [victim]


def test_running_work_is_listed_by_queue_and_slot_whoever_came_and_went() -> None:
    frame = encode(_cluster(8))
    dice = Random(7)
    for _ in range(60):
        _add(frame, dice.choice("ab"), 1)
        carry_out(frame, plan_frame(frame))
        running = np.flatnonzero(frame.work.phase == RUNNING).tolist()
        for slot in dice.sample(running, k=dice.randrange(len(running)) // 2):
            dice.choice([frame.finish, frame.requeue])(slot)
    plan_frame(frame)

    ordering, queue = frame.buffers.ordering, frame.work.queue
    listed = ordering.running.slot[: ordering.running.size[0]].tolist()
    assert listed == sorted(
        np.flatnonzero(frame.work.phase == RUNNING), key=lambda w: (queue[w], w)
    )
    for q in (1, 2):
        assert {
            queue[w]
            for w in listed[
                ordering.running.queue_begin[q + 1] : ordering.running.queue_begin[q + 2]
            ]
        } == {q}


def test_usage_of_more_users_than_there_was_room_for_is_noted() -> None:
    used = {f"user-{number}": number for number in range(200)}
    frame = encode(replace(_cluster(), queues=(Queue("a", user_usage=used),)))

    noted = {user: int(frame.users.usage[pair]) for (_, user), pair in frame.pairs.items()}
    assert {user: gpus for user, gpus in noted.items() if user} == used


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"queues": (Queue("a", parent="gone"),)}, "queues[0].parent"),
        ({"queues": (Queue("a", parent="b"), Queue("b", parent="a"))}, "queues[0].parent"),
        ({"queues": (Queue("a"), Queue("a"))}, "queues[1].name"),
        ({"nodes": (Node("n", "odd", 8000),)}, "nodes[0].gpu_class"),
        ({"queues": (Queue("a", quotas={"h100": Quota(-1)}),)}, "queues[0].quotas.h100.nominal"),
        ({"workloads": (Workload("w", "a", "odd", NOW),)}, "workloads[0].priority_class"),
        ({"workloads": (Workload("w", "a", "train", NOW, node_set="s"),)}, "workloads[0].node_set"),
        ({"node_sets": (NodeSet("s", frozenset({"gone"})),)}, "node_sets[0].nodes"),
        ({"node_sets": (NodeSet("s"), NodeSet("s"))}, "node_sets[1].name"),
        ({"workloads": (Workload("w", "a", "train", NOW, members=Members(3, 2)),)}, "workloads[0].members"),
        (
            {
                "workloads": (
                    Workload(
                        "w", "a", "train", NOW, phase=Phase.RUNNING, started=NOW,
                        gpu_class="h100", placement={"gone": 1},
                    ),
                )
            },
            "workloads[0].placement.gone",
        ),
    ],
)  # fmt: skip
def test_contradiction_in_a_snapshot_names_its_path(change: dict[str, object], path: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        plan(replace(_cluster(), **change))

    assert path in [fault[0] for fault in caught.value.faults]
