"""The past lived with and without changes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine.model import MILLI, PriorityClass, Queue, Quota
from scheduling.services.ledger.past import LedgerPast
from scheduling.services.studies.whatif.changes import read
from scheduling.services.studies.whatif.replay import CancelledError, Side, replayed
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.simulation.ahead.test_forward import H100, NOW, workload, world

NODES = {"kind": "capacity", "gpu_class": H100, "nodes": 1}
MORE = [NODES, {"kind": "quota", "queue": "speech", "gpu_class": H100, "nominal_gpus": 16}]


def past(count=12):
    jobs = tuple(
        Submission(workload(f"job-{i}", submitted=NOW + timedelta(hours=i)), 5400)
        for i in range(count)
    )
    return LedgerPast(NOW, NOW + timedelta(hours=count), jobs, 0)


def test_more_capacity_shortens_waits():
    found = replayed(world(), past(), read(MORE), replays=4)
    total = found.waits[-1]
    assert total.queue == ""
    assert total.p90_s.before > total.p90_s.after
    assert total.p90_s.verdict == "shorter"


def test_change_that_does_nothing_is_noise():
    nothing = read([{"kind": "quota", "queue": "speech", "gpu_class": H100, "weight": 2}])
    found = replayed(world(), past(), nothing, replays=4)
    assert found.waits[-1].p90_s.verdict == "noise"


def test_same_question_has_the_same_answer():
    first, second = (replayed(world(), past(), read(MORE), replays=2) for _ in range(2))
    assert first == second


def test_cancelled_replay_stops():
    seen = []

    def until_half(percent):
        seen.append(percent)
        if percent >= 50:
            raise CancelledError

    with pytest.raises(CancelledError):
        replayed(world(), past(), read(MORE), replays=3, progress=until_half)
    assert seen == sorted(seen)
    assert max(seen) < 75


def test_who_stood_at_the_beginning_is_not_counted():
    whole = past()
    found = replayed(
        world(), LedgerPast(whole.begin, whole.end, whole.submissions, 2), read(MORE), replays=0
    )
    assert found.jobs == 10


def shared(**borrowing):
    """Two queues of four GPUs each; one of them may borrow."""
    one = world()
    quotas = {name: {H100: Quota(4 * MILLI, **borrowing)} for name in ("speech", "vision")}
    return replace(one, queues=tuple(Queue(name, quotas=of) for name, of in quotas.items()))


def test_who_ends_later_than_on_its_own_quota_is_counted():
    """speech borrows all and cannot be made to give it back: vision waits behind it."""
    borrows = Submission(workload("borrows", submitted=NOW, priority_class="fixed"), 7200)
    owns = Submission(workload("owns", 4, queue="vision", submitted=NOW + timedelta(hours=1)), 3600)
    template = replace(
        shared(),
        priority_classes=(PriorityClass("training"), PriorityClass("fixed", min_run_time_s=86400)),
    )
    lived = LedgerPast(NOW, NOW + timedelta(hours=12), (borrows, owns), 0)
    none = [{"kind": "quota", "queue": "speech", "gpu_class": H100, "borrowing_limit_gpus": 0}]
    late = replayed(template, lived, read(none), replays=0).figures["later_than_alone"]
    assert (late.before, late.after) == (1, 0)


def test_value_and_band_are_of_the_same_lives():
    side = Side((240.0, 200.0, 190.0), (242.0, 210.0, 195.0))
    low, high = side.band
    assert (side.before, side.after) == (200.0, 210.0)
    assert low <= side.after <= high
    assert side.verdict == "longer"
