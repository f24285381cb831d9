"""Who is below and above whom in the tree, as a query and in memory."""

from __future__ import annotations

import pytest

from scheduling.models import Cluster, Queue
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree() -> dict[str, Queue]:
    """root ── a ── a-1 ── a-1-x, a-2; ab; another cluster has an ``a`` of its own."""
    made: dict[str, Queue] = {}

    def grow(cluster: Cluster, *pairs: tuple[str, str]) -> None:
        root = Queue.objects.get(cluster=cluster, parent=None)
        made.setdefault("root", root)
        for name, parent in pairs:
            key = name if name not in made else f"{name} elsewhere"
            made[key] = Queue.objects.create(
                cluster=cluster, name=name, parent=made[parent] if parent else root
            )

    Queue.objects.all().delete()
    for number, pairs in enumerate(
        [(("a", ""), ("a-1", "a"), ("a-1-x", "a-1"), ("a-2", "a"), ("ab", "")), (("a", ""),)]
    ):
        cluster = make_cluster(name=f"c{number}")
        Queue.objects.get_or_create(cluster=cluster, parent=None, defaults={"name": "root"})
        grow(cluster, *pairs)
    return made


@pytest.mark.parametrize(
    ("top", "strictly", "expected"),
    [
        ("a", False, {"a", "a-1", "a-1-x", "a-2"}),
        ("a", True, {"a-1", "a-1-x", "a-2"}),
        ("a-1-x", False, {"a-1-x"}),
        ("a-1-x", True, set()),
        ("root", False, {"root", "a", "a-1", "a-1-x", "a-2", "ab"}),
        ("root", True, {"a", "a-1", "a-1-x", "a-2", "ab"}),
    ],
)
def test_queues_below_one_are_its_subtree_in_its_cluster(
    tree: dict[str, Queue], top: str, strictly: bool, expected: set[str]
) -> None:
    found = Queue.objects.below(tree[top], strictly=strictly)

    assert {queue.pk for queue in found} == {tree[name].pk for name in expected}
    assert {n for n, queue in tree.items() if queue.is_within(tree[top])} - {top} == expected - {
        top
    }


@pytest.mark.parametrize(
    ("queue", "expected"), [("a-1-x", {"root", "a", "a-1"}), ("ab", {"root"}), ("root", set())]
)
def test_queues_above_one_lead_from_the_root_to_it(
    tree: dict[str, Queue], queue: str, expected: set[str]
) -> None:
    found = Queue.objects.above(tree[queue])

    assert {above.pk for above in found} == {tree[name].pk for name in expected}
