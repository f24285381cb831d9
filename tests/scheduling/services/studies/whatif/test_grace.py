"""What is taken from a queue is taken once its grace is over; what another is given is given at once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine.model import MILLI, Queue, Quota
from scheduling.services.studies.whatif.now import beside, plan_of
from scheduling.services.studies.whatif.preview import LEAVES, STARTS, _in_turn, spared
from tests.scheduling.simulation.ahead.test_forward import H100, NOW, workload, world

GRACE = NOW + timedelta(hours=1)


def divided(speech, vision):
    """speech runs 8 of 8 GPUs; vision waits for 8."""
    runs = workload("runs", runs_for_s=7200)
    template = world(runs, workload("waits", queue="vision"))
    quotas = {"speech": speech, "vision": vision}
    return replace(
        template, queues=tuple(Queue(n, quotas={H100: Quota(g * MILLI)}) for n, g in quotas.items())
    )


def moved(before, after, until=GRACE):
    plan = plan_of(before)
    first = spared(before, after, until)
    planned = beside(before, plan, after)
    lines = _in_turn(planned, beside(before, plan, first) if first else planned)
    return {(line.workload, kind, late) for line, kind, late in lines}


def test_lowered_queue_loses_its_work_and_the_other_starts_once_the_grace_is_over():
    assert moved(divided(8, 0), divided(0, 8)) == {("runs", LEAVES, True), ("waits", STARTS, True)}


def test_what_was_never_the_queues_own_leaves_at_once():
    assert moved(divided(0, 0), divided(0, 8)) == {
        ("runs", LEAVES, False),
        ("waits", STARTS, False),
    }


@pytest.mark.parametrize(
    ("was", "now", "is_spared"),
    [
        (Quota(8), Quota(4), True),
        (Quota(8), Quota(8), False),
        (Quota(4), Quota(8), False),
        (Quota(8, borrowing_limit=None), Quota(8, borrowing_limit=0), True),
        (Quota(8, weight=2), Quota(8, weight=1), True),
        (Quota(8, lending_limit=4), Quota(8, lending_limit=0), False),
    ],
)
def test_only_what_gives_less_is_spared(was, now, is_spared):
    one = replace(divided(8, 0), queues=(Queue("speech", quotas={H100: was}),))
    other = replace(one, queues=(Queue("speech", quotas={H100: now}),))
    assert (spared(one, other, GRACE) is not None) is is_spared
