"""A queue's eviction budget counts the evictions of the last day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.models import Eviction, Workload
from scheduling.services.queues.rows import engine_queues, load
from tests.scheduling.kube import policy

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.django_db
def test_budget_is_what_the_last_day_left_of_it_and_renews_a_day_after_its_first_eviction() -> None:
    cluster = policy("observe", "http://localhost", "research", "products")
    cluster.queues.filter(name="research").update(eviction_budget_gpus=8000)
    research = cluster.queues.get(name="research")
    work = Workload.objects.create(
        cluster=cluster, queue=research, uid="u", namespace="d", name="w", submitted_at=NOW
    )
    for hours, gpus in ((30, 4000), (20, 2000), (2, 3000)):
        at = NOW - timedelta(hours=hours)
        Eviction.objects.create(workload=work, queue=research, at=at, rule="reclaim", gpus=gpus)

    queues = {q.name: q for q in engine_queues(load(cluster, at=NOW))}

    assert queues["research"].eviction_budget_gpus == 3000
    assert queues["research"].eviction_budget_until == NOW + timedelta(hours=4)
    assert queues["products"].eviction_budget_gpus is None
