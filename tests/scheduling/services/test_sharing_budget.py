"""What a subtree that shares by merit may still evict: by its own arrivals and evictions alone."""

import pytest

from scheduling.models import Queue, Sharing
from scheduling.services.queues.sharing import evictions_left
from tests.factories import NOW, make_cluster, make_workload

pytestmark = pytest.mark.django_db


def test_arrivals_of_a_queue_whose_path_begins_alike_count_for_themselves():
    cluster = make_cluster()
    root = Queue.objects.create(cluster=cluster, name="fra1")
    research, beside = (
        Queue.objects.create(cluster=cluster, parent=root, name=name, sharing=Sharing.PROMISE)
        for name in ("research", "research-two")
    )
    make_workload(research, submitted_at=NOW)
    before = evictions_left([root, research, beside], Sharing.FAIR_SHARE, NOW)[research.pk]
    make_workload(beside, submitted_at=NOW)
    after = evictions_left([root, research, beside], Sharing.FAIR_SHARE, NOW)

    assert after[research.pk] == before == after[beside.pk] > 0
