"""What futures are drawn from, and how much of the ledger a pass reads for it."""

from datetime import timedelta

import pytest

from scheduling.models import State, Workload
from scheduling.services.starts import history
from scheduling.services.starts.history import known_of
from tests.factories import NOW, make_cluster, make_workload

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return make_cluster()


@pytest.fixture
def read(monkeypatch):
    """Keys of the workloads that were read."""
    keys, from_db = [], Workload.from_db.__func__

    def noted(cls, *columns):
        made = from_db(cls, *columns)
        keys.append(made.pk)
        return made

    monkeypatch.setattr(Workload, "from_db", classmethod(noted))
    return keys


def ran(cluster, name, *, ended, hours=1.0):
    began = ended - timedelta(hours=hours)
    return make_workload(
        None, cluster=cluster, name=name, state=State.FINISHED, outcome="succeeded",
        submitted_at=began - timedelta(minutes=5), first_started_at=began, started_at=began,
        finished_at=ended, used_gpu_s=3600 * hours,
    )  # fmt: skip


def test_second_pass_reads_what_came_or_ended_since_the_first(cluster, read):
    for number in range(30):
        ran(cluster, f"old-{number}", ended=NOW - timedelta(days=1, minutes=number))
    long = make_workload(None, cluster=cluster, name="long", submitted_at=NOW - timedelta(days=3))
    assert known_of(cluster, NOW).ended == 30
    later = NOW + timedelta(hours=1)
    Workload.objects.filter(pk=long.pk).update(
        state=State.FINISHED, outcome="succeeded", used_gpu_s=7200, finished_at=later,
        first_started_at=NOW, started_at=NOW,
    )  # fmt: skip
    new = ran(cluster, "new", ended=later, hours=0.5)
    read.clear()
    assert known_of(cluster, later).ended == 32
    assert sorted(read) == sorted([long.pk, new.pk])


def test_pass_a_day_later_reads_all_again(cluster, read):
    old = ran(cluster, "old", ended=NOW - timedelta(days=1))
    known_of(cluster, NOW)
    read.clear()
    known_of(cluster, NOW + timedelta(days=1))
    assert read == [old.pk]


def test_no_more_is_held_in_memory_than_is_drawn_from(cluster, monkeypatch):
    monkeypatch.setattr(history, "MOST_ARRIVALS", 5)
    for number in range(4):
        ran(cluster, f"old-{number}", ended=NOW - timedelta(days=2, minutes=number))
    known_of(cluster, NOW)
    later = NOW + timedelta(hours=2)
    for number in range(4):
        ran(cluster, f"new-{number}", ended=later - timedelta(minutes=number))
    known_of(cluster, later)
    (past,) = history._pasts.values()
    assert len(past._rows) == 5


def test_what_came_weeks_ago_is_let_go(cluster):
    ran(cluster, "old", ended=NOW - timedelta(weeks=7))
    known_of(cluster, NOW)
    found = known_of(cluster, NOW + timedelta(hours=1))
    assert len(found.arrivals) == 0
    assert found.ended == 1
    (past,) = history._pasts.values()
    past.whole_at = NOW + timedelta(weeks=2)
    assert known_of(cluster, NOW + timedelta(weeks=2)).ended == 0


def test_rows_have_what_is_read_of_them_without_another_query(
    cluster, django_assert_max_num_queries
):
    for number in range(20):
        ran(cluster, f"old-{number}", ended=NOW - timedelta(days=1, minutes=number))
    with django_assert_max_num_queries(4):
        known_of(cluster, NOW)
