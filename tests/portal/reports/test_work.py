"""Utilization by user and type, how work ended, and how much of what is installed was there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.reports.utilization import UtilizationReport, utilization
from portal.reports.work import NOBODY
from scheduling.models import GpuUse, Outcome, Workload, WorkloadType
from scheduling.services.ledger.workdays import roll_days
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_pages import client_of, filled, url  # noqa: F401 - a fixture
from tests.scheduling.services.test_workdays import live

pytestmark = pytest.mark.django_db


def report(small: Small, hours: float = 24, **filters: object) -> UtilizationReport:
    small.sample(small.root, small.h100, installed=16, ready=12)
    return utilization(small.cluster, small.last(hours, **filters), small.operator)


def ran(small: Small, hours: float | None = 2, ago: float = 5, **fields: object) -> Workload:
    return live(small.cluster, END - ago * HOUR, hours, gpu_class="h100", **fields)  # type: ignore[arg-type]


def test_users_come_by_gpu_hours_and_add_up_to_all(small: Small) -> None:
    ran(small, 2, gpus=2, user="ann")
    ran(small, 3, gpus=4, user="ben")
    ran(small, 1, gpus=1, user="")
    found = report(small).work
    assert [(row.name, row.gpu_hours) for row in found.users] == [
        ("ben", 12),
        ("ann", 4),
        (NOBODY, 1),
    ]
    assert found.total.gpu_hours == 17


def test_slices_count_their_part_of_a_gpu(small: Small) -> None:
    live(small.cluster, END - 5 * HOUR, 1, gpus=7, gpu_class="mig")
    assert report(small).work.total.gpu_hours == pytest.approx(1)


def test_types_are_told_apart(small: Small) -> None:
    ran(small, 2, gpus=1, type=WorkloadType.INFERENCE)
    ran(small, 2, gpus=3)
    assert [(row.name, row.gpu_hours) for row in report(small).work.types] == [
        ("Training", 6), ("Inference", 2),
    ]  # fmt: skip


def test_filters_narrow_the_breakdown_too(small: Small) -> None:
    ran(small, user="ann")
    ran(small, user="ben")
    assert [row.name for row in report(small, user="ann").work.users] == ["ann"]


def test_use_is_a_share_of_what_was_measured_and_absent_without(small: Small) -> None:
    work = ran(small, user="ann")
    ran(small, user="ben", gpus=1)
    GpuUse.objects.create(
        workload=work, gpu_class=small.h100, start=END - 5 * HOUR, gpu_s=800, active_gpu_s=200
    )
    shares = {row.name: row.used_share for row in report(small).work.users}
    assert shares == {"ann": 0.25, "ben": None}


def test_work_ends_by_outcome_with_the_hours_of_its_whole_life(small: Small) -> None:
    ran(small, 30, ago=31, gpus=2, outcome=Outcome.FAILED)
    ran(small, 1, gpus=2)
    ran(small, 1, gpus=2)
    ran(small, None)
    ended = {row.outcome: row for row in report(small).work.ended}
    assert (ended[Outcome.FAILED].count, ended[Outcome.FAILED].gpu_hours) == (1, 60)
    assert ended[Outcome.SUCCEEDED].share == pytest.approx(2 / 3)
    assert ended[Outcome.FAILED].held_share == pytest.approx(60 / 64)
    assert sum(row.count for row in ended.values()) == 3


def test_nothing_ended_is_said_by_no_rows(small: Small) -> None:
    ran(small, None)
    assert report(small).work.ended == ()


def test_lead_reads_only_the_own_subtree(small: Small) -> None:
    ran(small, user="ann")
    ran(small, user="eve", queue="platform")
    found = utilization(small.cluster, small.last(), small.lead).work
    assert [row.name for row in found.users] == ["ann"]


def test_rolled_up_days_change_no_figure(small: Small) -> None:
    for ago in (70, 40, 20, 3):
        ran(small, 2, ago=ago, user=f"u{ago}")
    before = report(small, 72).work
    small.cluster.clock_real = datetime.now(UTC)
    small.cluster.clock_start, small.cluster.clock_speed = END, 0
    small.cluster.save()
    assert roll_days(small.cluster, since=END - timedelta(days=5)) > 0
    assert utilization(small.cluster, small.last(72), small.operator).work == before


def test_available_is_what_was_ready_of_installed(small: Small) -> None:
    assert report(small).total.available_share == 0.75


def test_page_shows_users_types_and_outcomes_each_with_csv(filled: Small) -> None:  # noqa: F811
    ran(filled, user="ann")
    page = client_of(filled.operator).get(url("utilization"))
    text = page.content.decode()
    assert "By user" in text
    assert "How work ended" in text
    for table in ("users", "types", "ended"):
        assert f"table={table}" in text
        answer = client_of(filled.operator).get(url("utilization", f"?table={table}", "csv"))
        assert answer.status_code == 200
