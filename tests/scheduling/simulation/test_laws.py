"""The checker of laws names what a plan breaks, and is silent on what it may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduling.engine.model import (
    Action,
    Decision,
    GpuClass,
    LoweredQuota,
    Members,
    Node,
    Phase,
    Plan,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Reason,
    Share,
    Snapshot,
    Workload,
)
from workshop.simulator.laws.room import broken_laws

from .conftest import ORIGIN

LONG_AGO = ORIGIN - timedelta(days=1)
SHARE = Share(4000.0, 4000.0, 0, 4000, None, 8000, 0, 4000.0)


def running(name: str, queue: str, placement: dict[str, int], **more: Any) -> Workload:
    given = {
        "phase": Phase.RUNNING,
        "started": LONG_AGO,
        "gpu_class": "gpu",
        "members": Members(1, 8),
    }
    return Workload(name, queue, "train", LONG_AGO, placement=placement, **(given | more))


def waiting(name: str, queue: str, **more: Any) -> Workload:
    return Workload(name, queue, "train", LONG_AGO, **({"members": Members(1, 8)} | more))


def cluster(*workloads: Workload, queues: Sequence[Queue] = (), **more: Any) -> Snapshot:
    """Queues a and b of 4 GPUs each on two nodes of 4."""
    halves = tuple(Queue(name, quotas={"gpu": Quota(4000)}) for name in "ab")
    return Snapshot(
        now=ORIGIN,
        gpu_classes=(GpuClass("gpu"),),
        nodes=tuple(Node(name, "gpu", 4000, cpus=8000, memory_mib=1000) for name in ("n0", "n1")),
        queues=tuple(queues) or halves,
        priority_classes=(
            PriorityClass("train", min_run_time_s=60),
            PriorityClass("firm", 9, False),
        ),
        workloads=workloads,
        **more,
    )


def seat(name: str, action: Action, placement: dict[str, int], **more: Any) -> Decision:
    reason = {Action.GROW: Reason.GROWS, Action.SHRINK: Reason.SHRINKS}.get(action, Reason.BORROWS)
    return Decision(
        name, action, reason, gpu_class="gpu", members=sum(placement.values()), placement=placement, **more
    )  # fmt: skip


def evict(name: str, winner: str, members: int = 4) -> Decision:
    return Decision(
        name, Action.EVICT, Reason.RECLAIMED, gpu_class="gpu", members=members, for_workload=winner
    )


def broken(
    snapshot: Snapshot, *decisions: Decision, shares: dict[str, Share] | None = None
) -> list[str]:
    fair_share = {queue: {"gpu": share} for queue, share in (shares or {}).items()}
    return list(broken_laws(snapshot, Plan(fair_share, decisions)))


ELASTIC = running("w", "a", {"n0": 2}, elastic=True)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (seat("w", Action.GROW, {"n0": 3}), None),
        (seat("w", Action.GROW, {"n0": 1, "n1": 2}), "to grow from"),
        (seat("w", Action.GROW, {"n0": 5}), "holds 5000 of 4000 milli-GPU"),
        (seat("w", Action.GROW, {"n0": 4, "n1": 5}), "got 9 members"),
        (seat("w", Action.SHRINK, {"n0": 1}), None),
        (seat("w", Action.SHRINK, {"n1": 1}), "to shrink from"),
        (seat("w", Action.SHRINK, {}), "got 0 members"),
        (seat("w", Action.MOVE, {"n1": 2}), None),
        (seat("w", Action.MOVE, {"n1": 1}), "to move from"),
        (seat("w", Action.ADMIT, {"n1": 2}), "is admitted while it runs"),
    ],
)
def test_resized_or_moved_gang_is_whole_and_fits(decision: Decision, words: str | None) -> None:
    found = "; ".join(broken(cluster(ELASTIC), decision))

    assert words in found if words else found == ""


@pytest.mark.parametrize("action", [Action.GROW, Action.SHRINK])
def test_gang_that_is_not_elastic_keeps_its_members(action: Action) -> None:
    members = {"n0": 3 if action is Action.GROW else 1}

    [found] = broken(cluster(running("w", "a", {"n0": 2})), seat("w", action, members))

    assert found.startswith(f"w is to {action} from")


def test_gang_that_waits_is_not_resized() -> None:
    [found] = broken(cluster(waiting("w", "a")), seat("w", Action.SHRINK, {"n0": 1}))[:1]

    assert found == "w is to shrink but does not run"


@pytest.mark.parametrize(
    ("need", "words"),
    [
        ({"cpus": 4001}, "node n0 holds 8002 of 8000 milli-CPU"),
        ({"memory_mib": 501}, "node n0 holds 1002 of 1000 MiB"),
        ({"cpus": 4000, "memory_mib": 500}, ""),
    ],
)
def test_node_holds_no_more_cpus_and_memory_than_it_has(need: dict, words: str) -> None:
    snapshot = cluster(waiting("w", "a", **need))

    assert "; ".join(broken(snapshot, seat("w", Action.ADMIT, {"n0": 2}))) == words


def test_gpu_is_not_shared_past_one() -> None:
    shares = [running(f"s{i}", "a", {"n0": 1}, gpus=400, devices={"n0": (1,)}) for i in range(2)]
    third = seat("third", Action.ADMIT, {"n0": 1}, devices={"n0": (1,)})

    found = broken(cluster(*shares, waiting("third", "a", gpus=400)), third)

    assert found == ["GPU 1 of node n0 holds 1200 of 1000 milli-GPU"]


def test_leaving_members_hold_their_gpus_until_they_are_gone() -> None:
    shrunk = running("w", "a", {"n0": 1}, leaving_members={"n0": 2})

    found = broken(cluster(shrunk, waiting("v", "a")), seat("v", Action.ADMIT, {"n0": 2}))

    assert found == ["node n0 holds 5000 of 4000 milli-GPU"]


def test_queue_of_weight_zero_holds_nothing_above_nominal() -> None:
    queues = [Queue("a", quotas={"gpu": Quota(1000, weight=0.0)})]

    found = broken(cluster(waiting("w", "a"), queues=queues), seat("w", Action.ADMIT, {"n0": 2}))

    assert found == ["queue a holds 2000 of 1000 milli-GPU of gpu"]


def test_work_that_cannot_be_preempted_starts_inside_nominal() -> None:
    firm = replace(waiting("w", "a", members=Members(5, 5)), priority_class="firm")

    [found] = broken(cluster(firm), seat("w", Action.ADMIT, {"n0": 4, "n1": 1}))

    assert found.startswith("queue a holds 5000 milli-GPU of gpu that cannot be preempted")


def test_shares_of_siblings_do_not_sum_past_what_they_divide() -> None:
    shares = {"": replace(SHARE, fair_share=7000.0), "a": SHARE, "b": SHARE}

    [found] = broken(cluster(), shares=shares)

    assert found == "shares of gpu below '' sum to 8000.0 of 7000.0"


VICTIMS = (running("v1", "a", {"n0": 4}), running("v2", "a", {"n1": 4}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"policy": Policy(preemption_delay_s=100_000)}, "which has not waited"),
        ({"policy": Policy(eviction_cap=3.9)}, "asks for 1000 milli-GPU and has 4000 evicted"),
        ({"policy": Policy(eviction_cap=4.0)}, None),
        (
            {"queues": [Queue("a", eviction_budget_gpus=3000), Queue("b")]},
            "queue a loses 4000 of 3000 milli-GPU",
        ),
        (
            {"queues": [Queue("a", min_run_time_s=90_000), Queue("b")]},
            "v1 is to evict after 86400 of 90000 s",
        ),
    ],
)
def test_eviction_respects_delay_cap_budget_and_the_queues_min_run_time(
    change: dict, words: str | None
) -> None:
    snapshot = cluster(*VICTIMS, waiting("new", "b"), **change)
    wait = Decision("new", Action.RESERVE, Reason.AWAITS_VICTIMS, gpu_class="gpu", members=1)

    found = "; ".join(broken(snapshot, evict("v1", "new"), wait))

    assert words in found if words else found == ""


GETS_ROOM = Decision(
    "new", Action.RESERVE, Reason.AWAITS_VICTIMS, gpu_class="gpu", members=1, placement={"n0": 1}
)


@pytest.mark.parametrize(
    ("mover", "change", "decisions", "words"),
    [
        ({}, {}, (GETS_ROOM,), None),
        ({}, {}, (replace(GETS_ROOM, reason=Reason.RESERVED),), "which gets no room"),
        ({}, {"policy": Policy(max_moves=0)}, (GETS_ROOM,), "1 workloads move for new, 0 may"),
        ({"started": ORIGIN - timedelta(seconds=300)}, {}, (GETS_ROOM,), "after 300 of 600 s"),
        ({}, {"policy": Policy(max_moves=1, eviction_cap=1.5)}, (GETS_ROOM,), "has 2000 evicted"),
        (
            {},
            {"queues": [Queue("a", eviction_budget_gpus=1000), Queue("b")]},
            (GETS_ROOM,),
            "queue a loses 2000 of 1000 milli-GPU",
        ),
    ],
)
def test_who_moves_has_rested_and_moves_for_who_gets_the_room(
    mover: dict, change: dict, decisions: tuple[Decision, ...], words: str | None
) -> None:
    movable = running("w", "a", {"n0": 2}, **mover)
    snapshot = cluster(movable, waiting("new", "b"), **({"policy": Policy(max_moves=1)} | change))
    move = seat("w", Action.MOVE, {"n1": 2}, for_workload="new")

    found = "; ".join(broken(snapshot, move, *decisions))

    assert words in found if words else found == ""


def test_nobody_moves_for_a_lower_priority() -> None:
    high = replace(running("w", "a", {"n0": 2}), priority_class="high")
    snapshot = cluster(high, waiting("new", "b"), policy=Policy(max_moves=1))
    ranks = (*snapshot.priority_classes, PriorityClass("high", 5))
    move = seat("w", Action.MOVE, {"n1": 2}, for_workload="new")

    found = broken(replace(snapshot, priority_classes=ranks), move, GETS_ROOM)

    assert found == ["w moves for new, which has a lower priority"]


def test_victims_stand_before_whom_they_make_room_for() -> None:
    snapshot = cluster(*VICTIMS, waiting("new", "b"))

    assert broken(snapshot, evict("v1", "new"), GETS_ROOM) == []
    [found] = broken(snapshot, GETS_ROOM, evict("v1", "new"))
    assert found == "v1 is to evict after new, for whom it does"


@pytest.mark.parametrize(
    ("gang", "spared"),
    [
        ({"elastic": True}, True),
        ({"elastic": True, "members": Members(2, 8)}, False),
        ({}, False),
        ({"elastic": True, "gpus": 4000, "placement": {"n0": 1}, "members": Members(0, 1)}, False),
        ({"elastic": True, "priority_class": "firm"}, False),
    ],
)
def test_nobody_is_evicted_where_members_would_have_done(gang: dict, spared: bool) -> None:
    """a holds 5 of 4: its elastic gang of 2 could give one member where the victim sat."""
    held = (
        replace(running("g", "a", {"n0": 2}), **gang),
        running("v", "a", {"n0": 1}),
        running("u", "a", {"n1": 2}),
    )
    shares = {"": replace(SHARE, fair_share=8000.0), "a": SHARE, "b": SHARE}

    found = broken(
        cluster(*held, waiting("new", "b")), evict("v", "new", 1), GETS_ROOM, shares=shares
    )

    words = "v is evicted though g can do without as many members"
    assert (words in found) == spared


@pytest.mark.parametrize(
    ("victim", "owed", "spared"),
    [
        ({"gpus": 500}, {}, False),
        ({"gpus": 500}, {"members": Members(4, 8)}, True),
        ({"gpus": 500}, {"gpus": 500}, True),
        ({"gpus": 500}, {"gpu_classes": ("other",)}, True),
        ({}, {}, True),
    ],
    ids=["whole inside", "outside its share", "a share", "another class", "victim of a whole GPU"],
)
def test_members_would_not_have_done_where_others_would_have_kept_them(
    victim: dict, owed: dict, spared: bool
) -> None:
    """b's share of 4 has room for ``late`` beside new, unless it needs all of it."""
    held = (
        running("g", "a", {"n0": 2}, elastic=True),
        running("v", "a", {"n0": 1}, **victim),
        running("u", "a", {"n1": 3}),
    )
    late = waiting("late", "b", **({"members": Members(1, 1)} | owed))
    waits = Decision("late", Action.WAIT, Reason.NO_FREE_GPUS, sentence="It waits.")
    shares = {"": replace(SHARE, fair_share=8000.0), "a": SHARE, "b": SHARE}

    found = broken(
        cluster(*held, waiting("new", "b"), late),
        evict("v", "new", 1), GETS_ROOM, waits,
        shares=shares,
    )  # fmt: skip

    assert ("v is evicted though g can do without as many members" in found) == spared


def test_promised_room_is_there_once_victims_are_gone() -> None:
    snapshot = cluster(running("w", "a", {"n0": 4}), waiting("new", "b"))

    assert broken(snapshot, GETS_ROOM) == [
        "node n0 holds 5000 of 4000 milli-GPU once victims are gone"
    ]
    assert broken(snapshot, evict("w", "new"), GETS_ROOM) == []


def test_nobody_is_told_two_things() -> None:
    wait = Decision("w", Action.WAIT, Reason.NO_FREE_GPUS)

    assert broken(cluster(waiting("w", "a")), wait, wait) == ["w is told 2 things"]


def test_reclaim_takes_only_from_who_holds_more_than_its_share() -> None:
    snapshot = cluster(*VICTIMS, waiting("new", "b"))
    wait = Decision("new", Action.RESERVE, Reason.AWAITS_VICTIMS, gpu_class="gpu", members=1)
    shares = {"": replace(SHARE, fair_share=8000.0), "a": SHARE, "b": SHARE}

    assert broken(snapshot, evict("v1", "new"), wait, shares=shares) == []
    found = broken(snapshot, evict("v1", "new"), evict("v2", "new"), wait, shares=shares)
    assert found == ["v2 is reclaimed though a holds 4000 of 4000.0"]


@pytest.mark.parametrize(("hours", "words"), [(1, "is left 4000 milli-GPU"), (-1, "")])
def test_lowered_quota_keeps_its_former_nominal_until_the_grace_ends(
    hours: int, words: str
) -> None:
    lowered = LoweredQuota(ORIGIN + timedelta(hours=hours), nominal=8000)
    queues = [Queue("a", quotas={"gpu": Quota(4000, lowered=lowered)}), Queue("b")]
    snapshot = cluster(*VICTIMS, waiting("new", "b"), queues=queues)
    wait = Decision("new", Action.RESERVE, Reason.AWAITS_VICTIMS, gpu_class="gpu", members=1)
    shares = {
        "": replace(SHARE, fair_share=8000.0),
        "a": replace(SHARE, allocated=8000),
        "b": SHARE,
    }

    found = "; ".join(broken(snapshot, evict("v1", "new"), wait, shares=shares))

    assert words in found if words else found == ""


def test_who_waits_for_protected_victims_is_told_until_when() -> None:
    wait = Decision("w", Action.WAIT, Reason.VICTIMS_PROTECTED)

    [found] = broken(cluster(waiting("w", "a")), wait)

    assert found == "w waits for protected victims until None"
