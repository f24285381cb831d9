"""Two people save at the same moment: one waits for the other, and the sums hold."""

import threading
from decimal import Decimal

import pytest
from django.db import connection

from scheduling.models import Cluster, Queue, Quota
from scheduling.services.queues.save import Field, QuotaCell, QuotaError, save_quotas
from tests.factories import example_cluster
from workshop.demo.organisation import H100

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "connection.vendor != 'postgresql'", reason="SQLite takes one writer at a time anyway"
    ),
]


def test_two_saves_that_fit_alone_but_not_together_are_not_both_taken():
    cluster = example_cluster()
    research = cluster.queues.get(name="research")
    free = QuotaCell("vision", H100, Field.NOMINAL, Decimal(8))
    save_quotas(queue=research, cells=[free], author=None, reason="Frees 8")
    start, refused = threading.Barrier(2), []

    def raise_by_eight(name, to):
        cell = QuotaCell(name, H100, Field.NOMINAL, Decimal(to))
        start.wait()
        try:
            save_quotas(
                queue=Queue.objects.get(pk=research.pk), cells=[cell], author=None, reason="Mine"
            )
        except QuotaError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [
        threading.Thread(target=raise_by_eight, args=pair)
        for pair in (("speech", 16), ("robotics", 12))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    now = Cluster.objects.get().now()
    rows = Quota.objects.in_force(now).filter(queue__parent=research, gpu_class__name=H100)
    assert sum(row.nominal_gpus for row in rows) == 64_000
    assert len(refused) == 1
