"""A reservation told together with the forecast of its start: of both times the later one is said.

Two nodes of 8 GPUs, 5 of each held; ``wide`` needs 6 on one and has a reservation, and the 3 that it is kept
there are the ones that ``behind`` lacks, two members of 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from scheduling.engine import (
    GpuClass,
    Node,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Workload,
    encode,
)
from scheduling.engine import model as m
from scheduling.engine.explain.decode import UNKNOWN, outline
from scheduling.engine.model import PredictedRunTime
from scheduling.engine.planner import plan_frame
from tests.scheduling.engine.worlds import NOW

HOUR = timedelta(hours=1)
HOURS = PredictedRunTime(2 * 3600, 3 * 3600)


def told(name: str, starts: Mapping[str, datetime]) -> m.Decision:
    halves = [
        Workload(
            f"on-{node}", "q", "train", NOW - HOUR, gpus=5000, gpu_class="h100",
            phase=m.Phase.RUNNING, started=NOW - HOUR, placement={node: 1}, predicted=HOURS,
        )
        for node in ("n1", "n2")
    ]  # fmt: skip
    wide = Workload("wide", "q", "train", NOW - HOUR / 2, gpus=6000)
    behind = Workload("behind", "q", "train", NOW - HOUR / 4, gpus=3000, members=m.Members(2, 2))
    frame = encode(
        Snapshot(
            NOW,
            gpu_classes=(GpuClass("h100"),),
            nodes=(Node("n1", "h100", 8000), Node("n2", "h100", 8000)),
            queues=(Queue("q", quotas={"h100": Quota(nominal=24_000)}),),
            priority_classes=(PriorityClass("train"),),
            workloads=(*halves, wide, behind),
        )
    )
    decisions = outline(frame, plan_frame(frame), starts).whole().decisions
    return next(d for d in decisions if d.workload == name)


def test_reservation_tells_the_later_time_of_the_forecast() -> None:
    later = NOW + 30 * HOUR
    found = told("wide", {"wide": later})

    assert found.reason is m.Reason.RESERVED
    assert found.until == later
    for words in (found.sentence, found.sealed or found.sentence):
        assert words.endswith(f"until the rest ends, expected by {later:%Y-%m-%d %H:%M} UTC.")


def test_reservation_keeps_its_own_time_where_that_is_later() -> None:
    own = told("wide", UNKNOWN)

    assert own.until is not None
    assert told("wide", {"wide": NOW + timedelta(minutes=1)}) == own


def test_who_waits_behind_a_reservation_is_told_its_later_start() -> None:
    before = told("behind", UNKNOWN)
    found = told("behind", {"wide": NOW + 30 * HOUR})

    assert before.reason is m.Reason.RESERVED_FOR_OTHER
    assert " and starts in 2 h if what runs ends as expected;" in before.sentence
    assert found.numbers["starts_in_s"] == 30 * 3600
    assert " and starts in 1 d 6 h if what runs ends as expected;" in found.sentence


def test_forecasts_of_others_change_no_word() -> None:
    assert told("wide", {"on-n1": NOW + 30 * HOUR}) == told("wide", UNKNOWN)


def test_who_is_expected_before_the_other_is_not_told_to_wait_for_its_start() -> None:
    found = told("behind", {"behind": NOW + HOUR})

    assert found.reason is m.Reason.RESERVED_FOR_OTHER
    assert "which goes first; " in found.sentence
    assert "starts_in_s" not in found.numbers
