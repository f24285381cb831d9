"""Rows written in bulk are the rows that saving one by one would have made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from scheduling.models import Cluster, Outcome, State, Transition, Workload
from scheduling.services.tables.bulk import (
    ROWS,
    insert_keyed,
    insert_rows,
    insert_values,
    write_columns,
)

NOW = datetime(2026, 1, 5, 9, 0, 0, 250_000, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="test")


def workload(cluster: Cluster, number: int = 0) -> Workload:
    return Workload(
        cluster=cluster,
        uid=f"u{number}",
        name=f"w{number}",
        namespace="ns",
        kind="Job",
        submitted_at=NOW,
        gpus=1500,
        gpu_classes=["h100", "a100"] if number else [],
        placement={"n1": 2} if number else {},
        used_gpu_s=0.5,
        elastic=True,
    )


def test_each_row_gets_its_own_key(cluster: Cluster) -> None:
    rows = [workload(cluster, number) for number in range(2 * ROWS + 1)]
    insert_keyed(rows)

    assert {row.pk: row.uid for row in rows} == dict(Workload.objects.values_list("pk", "uid"))


@pytest.mark.parametrize("insert", [insert_keyed, insert_rows])
@pytest.mark.parametrize("number", [0, 1])
def test_row_reads_back_as_it_was(
    cluster: Cluster, insert: Callable[[list[Workload]], None], number: int
) -> None:
    insert([workload(cluster, number)])
    saved = workload(Cluster.objects.create(name="other"), number)
    saved.save()

    one = Workload.objects.filter(cluster=cluster).values().get()
    other = Workload.objects.filter(pk=saved.pk).values().get()
    differs = {name for name in one if one[name] != other[name]}
    assert differs <= {"id", "cluster_id"}


def test_columns_are_written_and_no_others(cluster: Cluster) -> None:
    row = workload(cluster)
    insert_keyed([row])
    row.state, row.outcome, row.finished_at = State.FINISHED, Outcome.FAILED, NOW
    row.placement, row.name = {"n2": 1}, "renamed"
    write_columns([row], ["state", "outcome", "finished_at", "placement"])

    row.refresh_from_db()
    assert (row.state, row.outcome, row.finished_at) == (State.FINISHED, Outcome.FAILED, NOW)
    assert (row.placement, row.name) == ({"n2": 1}, "w0")


def test_nothing_to_write_asks_no_database() -> None:
    insert_keyed([])
    insert_rows([])
    write_columns([], ["state"])


def test_values_point_at_objects_that_got_their_keys_since_and_else_have_defaults(
    cluster: Cluster,
) -> None:
    work = workload(cluster)
    steps = [(work, NOW, "pending"), (work, NOW, "admitted")]
    insert_keyed([work])
    insert_values(Transition, ("workload", "at", "to_state"), steps)

    rows = list(Transition.objects.order_by("pk"))
    saved = Transition(workload=work, at=NOW, to_state="pending")
    saved.save()
    saved.refresh_from_db()
    for row, to_state in zip(rows, ("pending", "admitted"), strict=True):
        alike = {f.attname: getattr(saved, f.attname) for f in Transition._meta.concrete_fields}
        alike |= {"id": row.pk, "to_state": to_state}
        assert {name: getattr(row, name) for name in alike} == alike


def test_no_values_write_nothing() -> None:
    insert_values(Transition, ("workload",), [])
    assert not Transition.objects.exists()
