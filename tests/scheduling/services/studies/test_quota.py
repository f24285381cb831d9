"""A queue and what is below it, alone on its own quota; and steps of so many GPUs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine.model import MILLI, Queue, Quota, Sharing
from scheduling.services.ledger.past import LedgerPast
from scheduling.services.studies.capacity.ladder import (
    alone_in,
    changed,
    ladders,
    names_below,
    only,
    quota_ladders,
    with_quota,
)
from scheduling.services.studies.whatif.now import ready
from scheduling.simulation.ahead.compare import lived
from scheduling.simulation.run.jobs import Submission
from tests.scheduling.simulation.ahead.test_forward import H100, NOW, workload, world

HOUR = timedelta(hours=1)


def tree(nodes=4):
    """research has 12 of 32 GPUs; speech and vision are below it, ops beside it."""

    def queue(name, gpus, parent=None, **more):
        return Queue(name, parent=parent, quotas={H100: Quota(gpus * MILLI)}, **more)

    queues = (
        queue("labs", 12, sharing=Sharing.PROMISE), queue("research", 12, "labs"),
        queue("speech", 8, "research"), queue("vision", 4, "research"), queue("ops", 20),
    )  # fmt: skip
    return replace(world(nodes=nodes), queues=queues)


def jobs(queue, count, gpus=4):
    return [
        Submission(workload(f"{queue}-{i}", gpus, queue=queue, submitted=NOW), 3600)
        for i in range(count)
    ]


def wait_s(template, queue, count):
    found = lived(template, jobs(queue, count), before=0, until=NOW + 24 * HOUR)
    return found.wait_s.tolist()


def test_names_below_are_the_queue_and_its_subtree():
    assert names_below(tree(), "research") == {"research", "speech", "vision"}


def test_alone_it_borrows_nothing_from_others():
    """Twelve GPUs of quota hold three of four jobs, whatever stands idle beside it."""
    assert sorted(wait_s(tree(), "speech", 4)) == [0.0] * 4
    assert sorted(wait_s(alone_in(tree(), "research"), "speech", 4)) == [0.0, 0.0, 0.0, 3600.0]


def test_alone_it_shares_as_the_queue_above_says():
    (top,) = [q for q in alone_in(tree(), "research").queues if q.parent is None]
    assert (top.name, top.sharing) == ("research", Sharing.PROMISE)


@pytest.mark.parametrize(("gpus", "waits"), [(4, 3), (8, 2), (16, 0)])
def test_more_quota_lets_more_start_at_once(gpus, waits):
    found = wait_s(
        with_quota(alone_in(tree(), "research"), "research", H100, gpus * MILLI), "speech", 4
    )
    assert sum(s > 0 for s in found) == waits


def test_quota_above_what_is_installed_gets_nodes_for_it():
    found = with_quota(alone_in(tree(nodes=1), "research"), "research", H100, 20 * MILLI)
    assert ready(found, H100) == 24 * MILLI


@pytest.mark.parametrize(
    ("step", "expected"), [(0, [4, 12, 20]), (2, [10, 12, 14]), (12, [12, 24])]
)
def test_ladder_of_a_quota_goes_by_a_node_or_by_so_many_gpus(step, expected):
    (one,) = quota_ladders(tree(), "research", (-1, 1), step * MILLI)
    assert [rung.gpus // MILLI for rung in one.rungs] == expected
    assert one.installed == 12 * MILLI


def test_queue_without_quota_has_no_ladder():
    bare = replace(tree(), queues=(Queue("idle"),))
    assert quota_ladders(bare, "idle", (1,), 0) == ()


def test_only_the_work_of_the_subtree_is_lived():
    both = (*jobs("speech", 1), *jobs("ops", 1), *jobs("speech", 2))
    found = only(LedgerPast(NOW, NOW + HOUR, both, 2), frozenset({"speech"}))
    assert (len(found.submissions), found.before) == (3, 1)


@pytest.mark.parametrize(
    ("steps", "step", "gpus"),
    [
        (1, 4, 36),
        (2, 4, 40),
        (3, 4, 44),
        (-1, 4, 28),
        (-3, 4, 20),
        (1, 12, 44),
        (-1, 12, 20),
        (0, 4, 32),
    ],
)
def test_step_of_gpus_takes_whole_nodes_and_a_part_of_one(steps, step, gpus):
    found = changed(tree(), H100, steps, step * MILLI)
    assert ready(found, H100) == gpus * MILLI
    assert max(node.gpus for node in found.nodes) == 8 * MILLI


def test_ladder_of_gpus_never_takes_the_last():
    (one,) = ladders(tree(nodes=1), (-3, -2, -1, 1), step_gpus=3 * MILLI)
    assert [rung.gpus // MILLI for rung in one.rungs] == [2, 5, 8, 11]


@pytest.mark.parametrize(
    ("then", "expected"), [(24, [24, 32]), (27, [24, 32]), (32, [32]), (40, [32])]
)
def test_what_was_ready_then_is_a_rung(then, expected):
    (one,) = ladders(tree(), (), ready_then={H100: then * MILLI})
    assert [rung.gpus // MILLI for rung in one.rungs] == expected
