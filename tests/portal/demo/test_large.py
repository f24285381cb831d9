"""The large organisation of benchmarks: what is written holds together, and its people see pages."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Sum
from django.test import Client

from scheduling.models import Cluster, Queue, Quota, Share, State, UsageSample, WorkDay, Workload

pytestmark = pytest.mark.django_db
SIZE = {"workloads": 200, "queues": 60, "people": 50, "sessions": 50}
on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="it is written by PostgreSQL itself"
)


@pytest.fixture
def people(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    call_command("seed_large", **SIZE)
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_sqlite_is_refused_in_words() -> None:
    if connection.vendor == "postgresql":
        pytest.skip("this is PostgreSQL")
    with pytest.raises(CommandError, match="Name a PostgreSQL"):
        call_command("seed_large", **SIZE)


@on_postgres
def test_tree_work_and_history_are_as_large_as_asked(people: list[dict[str, str]]) -> None:
    assert Queue.objects.count() == SIZE["queues"]
    assert Workload.objects.exclude(state=State.FINISHED).count() == SIZE["workloads"]
    assert UsageSample.objects.filter(resolution="day", queue__parent=None).count() == 2 * 365
    assert WorkDay.objects.exists()
    leaves = Quota.objects.filter(queue__children=None).aggregate(sum=Sum("nominal_gpus"))["sum"]
    inner = Quota.objects.filter(queue__parent__parent=None).aggregate(sum=Sum("nominal_gpus"))[
        "sum"
    ]
    assert leaves == inner
    assert Share.objects.count() == 2 * SIZE["queues"]


@on_postgres
@pytest.mark.parametrize("page", ["", "work/", "workloads/", "reports/utilization?from=2026-01-01"])
def test_every_persona_comes_in_by_its_session(people: list[dict[str, str]], page: str) -> None:
    for persona in ("researcher", "team lead", "admin"):
        person = next(one for one in people if one["persona"] == persona)
        assert visit(person, page) == 200


@on_postgres
def test_everybody_sees_the_workload_and_the_queue_that_stand_with_their_session(
    people: list[dict[str, str]],
) -> None:
    for person in people:
        assert visit(person, f"w/{person['workload']}/") == 200, person
        assert visit(person, f"queues/{person['queue']}/") == 200, person


def visit(person: dict[str, str], page: str, cluster: str = "large") -> int:
    browser = Client()
    browser.cookies[person["cookie"]] = person["value"]
    return browser.get(f"/c/{cluster}/{page}").status_code


@on_postgres
def test_database_with_a_cluster_is_refused(people: list[dict[str, str]]) -> None:
    with pytest.raises(CommandError, match="empty"):
        call_command("seed_large", **SIZE)


@on_postgres
def test_clusters_share_people_queues_and_work_and_an_admin_sees_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_command("seed_large", **SIZE, clusters=2, nodes=4)
    people = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert [(c.name, c.nodes.count()) for c in Cluster.objects.order_by("name")] == [
        ("large", 4),
        ("large-01", 4),
    ]
    assert Queue.objects.count() == SIZE["queues"]
    assert Workload.objects.exclude(state=State.FINISHED).count() == SIZE["workloads"]
    admin = next(one for one in people if one["persona"] == "admin")
    assert visit(admin, "", "large-01") == visit(admin, "") == 200
