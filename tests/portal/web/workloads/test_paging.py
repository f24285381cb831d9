"""A long list is sorted by what an index has, and only what is shown is read whole."""

import re
from datetime import timedelta

import pytest
from django.core.paginator import Paginator
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.web.sorting import Sort
from portal.web.workloads.paging import paged
from portal.web.workloads.sorting import BY_END, BY_STATE
from scheduling.models import Cluster, Queue, State, Workload
from tests.factories import NOW, make_cluster, make_workload

pytestmark = pytest.mark.django_db
STATES = (State.PENDING, State.RUNNING, State.FINISHED)
COUNTS = dict.fromkeys(STATES, 3)


@pytest.fixture
def cluster() -> Cluster:
    """Three of each state, the first submitted last."""
    cluster = make_cluster()
    queue = Queue.objects.create(cluster=cluster, name="fra1")
    for state in STATES:
        for hours in (1, 2, 3):
            at = NOW - timedelta(hours=hours)
            work = make_workload(queue, name=f"{state}-{hours}", submitted_at=at)
            ended = at if state == State.FINISHED else None
            Workload.objects.filter(pk=work.pk).update(state=state, finished_at=ended)
    return cluster


def pages(by: Sort, size: int) -> list[str]:
    shown = Paginator(paged(Workload.objects.all(), by, COUNTS, NOW), size)
    return [work.name for page in shown for work in page]


@pytest.mark.parametrize("size", [1, 2, 4, 5, 9, 50])
def test_pages_of_any_size_follow_one_another(cluster, size):
    assert pages(BY_STATE, size) == [f"{state}-{hours}" for state in STATES for hours in (1, 2, 3)]


@pytest.mark.parametrize("by", [BY_STATE, BY_END, Sort("name"), Sort("gpus", falls=True)])
def test_every_order_shows_each_row_once(cluster, by):
    assert sorted(pages(by, 4)) == sorted(pages(BY_STATE, 50))


@pytest.mark.parametrize("by", [BY_STATE, BY_END, Sort("name")])
def test_what_is_sorted_is_joined_with_nothing(cluster, by):
    shown = paged(Workload.objects.filter(cluster=cluster), by, COUNTS, NOW)
    with CaptureQueriesContext(connection) as asked:
        shown[0:4]

    ordered = [one["sql"] for one in asked if "ORDER BY" in one["sql"] and "LIMIT" in one["sql"]]
    assert ordered
    assert not [sql for sql in ordered if "JOIN" in sql]


def test_usual_order_is_that_of_an_index(cluster):
    shown = paged(Workload.objects.filter(cluster=cluster), BY_STATE, COUNTS, NOW)
    with CaptureQueriesContext(connection) as asked:
        shown[0:4]

    orders = {m for one in asked for m in re.findall(r"ORDER BY (.+?) LIMIT", one["sql"])}
    assert orders
    assert not [order for order in orders if "CASE" in order or "COALESCE" in order]
