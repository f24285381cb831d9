"""Queries of each list do not grow with its rows."""

import pytest

from scheduling.models import (
    Action,
    Cycle,
    Decision,
    Eviction,
    GpuClass,
    Node,
    Queue,
    Quota,
    QuotaChange,
    Share,
    Workload,
)
from tests.factories import NOW, make_cluster, make_member, make_workload

pytestmark = pytest.mark.django_db
AMS1 = "/api/v1/clusters/ams1"


@pytest.fixture
def grow(db):
    """``grow(n)``: a cluster in which every list has n rows (the tree one more: its root)."""
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    make_member(root, name="reader", may_operate=False, may_read_costs=True)

    def rows(count: int) -> None:
        for i in range(count):
            one_of_each(cluster, root, i)

    return rows


def one_of_each(cluster, root, i):
    gpu_class = GpuClass.objects.create(cluster=cluster, name=f"c{i}")
    Node.objects.create(cluster=cluster, gpu_class=gpu_class, name=f"n{i}", gpus=8000)
    queue = Queue.objects.create(cluster=cluster, parent=root, name=f"q{i}")
    Share.objects.create(queue=queue, gpu_class=gpu_class)
    change = QuotaChange.objects.create(
        cluster=cluster, queue=queue, reason="x", at=NOW, effective_from=NOW
    )
    Quota.objects.create(queue=queue, gpu_class=gpu_class, effective_from=NOW, change=change)
    work = make_workload(queue, gpu_classes=[f"c{i}"], state="running")
    cycle = Cycle.objects.create(cluster=cluster, number=i + 1, at=NOW)
    Decision.objects.create(cycle=cycle, workload=work, action=Action.ADMIT.value)
    Eviction.objects.create(
        workload=work, at=NOW, queue=queue, gpu_class=gpu_class, gpus=1000, cycle=cycle
    )
    make_member(queue)


QUERIES = {
    "/api/v1/clusters": 3,
    f"{AMS1}/gpu-classes": 4,
    f"{AMS1}/nodes": 4,
    f"{AMS1}/queues": 6,
    f"{AMS1}/quotas": 5,
    f"{AMS1}/quota-changes": 5,
    f"{AMS1}/workloads": 6,
    f"{AMS1}/decisions": 5,
    f"{AMS1}/cycles": 4,
    f"{AMS1}/evictions": 5,
    "/api/v1/teams": 6,
    "/api/v1/personas": 5,
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("url", QUERIES)
def test_queries_do_not_grow_with_rows(grow, rows, url, django_assert_num_queries, reader):
    grow(rows)
    client = reader()
    with django_assert_num_queries(QUERIES[url]):
        assert client.get(url).status_code == 200


@pytest.mark.parametrize("rows", [1, 3])
def test_queries_of_a_workload_do_not_grow_with_its_past(
    grow, rows, django_assert_num_queries, reader
):
    grow(1)
    work = Workload.objects.get()
    for _ in range(rows):
        Eviction.objects.create(workload=work, at=NOW, gpus=1000)
    client = reader()
    with django_assert_num_queries(12):
        assert client.get(f"{AMS1}/workloads/{work.uid}").status_code == 200


@pytest.fixture
def reader(django_user_model):
    """``reader()``: a client signed in as the member of the root, made once the rows are there."""
    from rest_framework.test import APIClient

    def sign_in():
        client = APIClient()
        client.force_authenticate(django_user_model.objects.get(username="reader"))
        return client

    return sign_in
