"""What is kept of an eviction: its table and its sentence say the same of the same moment."""

from __future__ import annotations

import pytest

from scheduling.engine import Outline, Waits
from scheduling.engine import model as m
from scheduling.models import Cluster, State
from scheduling.services.ledger.evictions import numbers_at
from tests.factories import example_cluster, make_workload

pytestmark = pytest.mark.django_db
H100 = "h100-80gb"


@pytest.fixture
def cluster() -> Cluster:
    return example_cluster()


@pytest.mark.parametrize(
    ("more", "table"), [({}, (5, 3)), ({"queue": "research"}, (4, 2))], ids=["own", "above"]
)
def test_table_says_what_the_sentence_says_of_the_same_queue(
    cluster: Cluster, more: dict[str, str], table: tuple[int, int]
) -> None:
    """A start of the same plan came before: the division, which is older, holds 4."""
    queue = cluster.queues.get(name="vision")
    victim = make_workload(queue, state=State.RUNNING, gpus=2000)
    share = m.Share(3800.0, 3800.0, 4000, 4000, None, 4000, 0, 3800.0)
    evicts = m.Decision(
        "vision/victim", m.Action.EVICT, m.Reason.RECLAIMED, "vision held 5. vision keeps 3.",
        gpu_class=H100, numbers={"held": 5, "fair_share": 3.8, "keeps": 3, **more},
    )  # fmt: skip
    plan = Outline({queue.name: {H100: share}}, (evicts,), Waits([], [], [], lambda _: []))

    kept = numbers_at(evicts, plan, {evicts.workload: victim})

    assert (kept["victim_held_before"], kept["victim_held_after"]) == table
