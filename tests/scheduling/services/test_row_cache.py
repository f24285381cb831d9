"""Policy rows are the very same objects until one of them changes, however that is done."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import QuerySet

from scheduling.models import Cluster, Queue
from scheduling.services.tables.row_cache import RowCache
from tests.scheduling.kube import policy


@pytest.fixture
def cluster(db: None) -> Cluster:
    return policy("enforce", "http://127.0.0.1:1", "research", "products")


Read = Callable[[RowCache, Cluster], tuple[Queue, ...]]


def read_anew(held: RowCache, cluster: Cluster) -> tuple[Queue, ...]:
    return held.rows("queues", Queue.objects.filter(cluster=cluster))


def read_steadily(held: RowCache, cluster: Cluster) -> tuple[Queue, ...]:
    return held.steady("queues", cluster.pk, lambda: Queue.objects.filter(cluster=cluster))


@pytest.fixture(params=[read_anew, read_steadily])
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
    (one,) = held.rows("one", Queue.objects.filter(name="research"))

    assert one.name == "research"
    assert read(held, cluster) is everybody
