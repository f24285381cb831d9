"""Policy rows are the very same objects until one of them changes, however that is done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from scheduling.models import Cluster, Queue, Quota
from scheduling.services.tables.row_cache import RowCache
from tests.scheduling.kube import policy


@pytest.fixture
def cluster(db: None) -> Cluster:
    return policy("enforce", "http://127.0.0.1:1", "research", "products")


Read = Callable[[RowCache, Cluster], tuple[Queue, ...]]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def read_steadily(held: RowCache, cluster: Cluster) -> tuple[Queue, ...]:
    return held.steady("queues", cluster.pk, lambda: Queue.objects.filter(cluster=cluster))


def read_for_a_time(held: RowCache, cluster: Cluster) -> tuple[Queue, ...]:
    def planned_before(at: datetime) -> QuerySet[Queue]:
        return Queue.objects.filter(cluster=cluster).exclude(cluster__planned_at__gt=at)

    return held.steady_at("queues", cluster.pk, timezone.now(), planned_before)


@pytest.fixture(params=[read_steadily, read_for_a_time])
def read(request: pytest.FixtureRequest) -> Read:
    found: Read = request.param
    return found


def test_steady_query_is_made_once_for_each_that_it_is_about(cluster: Cluster) -> None:
    held, other = RowCache(), policy("enforce", "http://127.0.0.1:1", "vision", name="other")
    made: list[int] = []

    def about(one: Cluster) -> tuple[Queue, ...]:
        def make() -> QuerySet[Queue]:
            made.append(one.pk)
            return Queue.objects.filter(cluster=one)

        return held.steady("queues", one.pk, make)

    before = about(cluster)
    assert about(cluster) is before
    assert {q.name for q in about(other)} == {"root", "vision"}
    assert made == [cluster.pk, cluster.pk, other.pk, other.pk]  # the statement, and the objects


def test_rows_that_did_not_change_are_the_same_objects(cluster: Cluster, read: Read) -> None:
    held = RowCache()
    before = read(held, cluster)

    assert {q.name for q in before} == {"root", "research", "products"}
    assert read(held, cluster) is before


def rename() -> None:
    Queue.objects.filter(name="research").update(name="basic")


def delete() -> None:
    Queue.objects.get(name="research").delete()


def add() -> None:
    root = Queue.objects.get(name="root")
    Queue.objects.create(cluster=root.cluster, name="more", parent=root)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (rename, {"root", "basic", "products"}),
        (delete, {"root", "products"}),
        (add, {"root", "research", "products", "more"}),
    ],
)
def test_change_is_seen_by_the_next_reading(
    cluster: Cluster, read: Read, change: Callable[[], None], names: set[str]
) -> None:
    held = RowCache()
    read(held, cluster)
    change()

    assert {q.name for q in read(held, cluster)} == names


def test_queries_of_two_names_are_told_apart(cluster: Cluster, read: Read) -> None:
    held = RowCache()
    everybody = read(held, cluster)
    (one,) = held.steady("one", None, lambda: Queue.objects.filter(name="research"))

    assert one.name == "research"
    assert read(held, cluster) is everybody


@pytest.mark.parametrize(("hours", "nominal"), [(0, [4000]), (1, [8000]), (2, [])])
def test_query_of_a_time_reads_what_holds_then(
    cluster: Cluster, hours: int, nominal: list[int]
) -> None:
    held, place = RowCache(), Quota.objects.filter(queue__cluster=cluster).first()
    assert place
    Quota.objects.all().delete()
    for since, gpus in ((NOON, 4000), (NOON + HOUR, 8000)):
        Quota.objects.create(
            queue=place.queue, gpu_class=place.gpu_class, nominal_gpus=gpus,
            effective_from=since, effective_until=since + HOUR,
        )  # fmt: skip

    def read_at(at: datetime) -> list[int]:
        return [q.nominal_gpus for q in held.steady_at("quotas", None, at, Quota.objects.in_force)]

    assert read_at(NOON) == [4000]
    assert read_at(NOON + hours * HOUR) == nominal


def test_what_is_made_of_equal_values_is_made_once() -> None:
    held = RowCache()
    first = held.once("sum", (1, 2), lambda: [3])

    assert held.once("sum", (1, 2), lambda: [0]) is first
    assert held.once("sum", (1, 3), lambda: [4]) == [4]
