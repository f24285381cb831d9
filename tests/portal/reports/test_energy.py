"""Energy by queue, class and time: it adds up, and is measured per GPU that was held."""

from __future__ import annotations

import pytest

from portal.reports.energy import J_PER_KWH, energy, finding
from scheduling.models import GpuClass, GpuUse, Queue
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db


def took(
    queue: Queue, gpu_class: GpuClass, *, kwh: float, gpu_hours: float, hours_ago: float = 1
) -> None:
    GpuUse.objects.create(
        workload=make_workload(queue), gpu_class=gpu_class, start=END - HOUR * hours_ago,
        gpu_s=gpu_hours * 3600, energy_j=kwh * J_PER_KWH,
    )  # fmt: skip


def test_energy_by_queue_class_and_period_adds_up_to_the_same(small: Small) -> None:
    took(small.vision, small.h100, kwh=3, gpu_hours=6)
    took(small.speech, small.mig, kwh=1, gpu_hours=4, hours_ago=5)
    took(small.platform, small.h100, kwh=2, gpu_hours=4, hours_ago=5)
    report = energy(small.cluster, small.last(), small.operator)
    assert [(row.name, row.kwh) for row in report.queues] == [
        ("research/vision", 3), ("platform", 2), ("research/speech", 1),
    ]  # fmt: skip
    for rows in (report.queues, report.classes, report.periods):
        assert sum(row.kwh for row in rows) == pytest.approx(6)
        assert sum(row.gpu_hours for row in rows) == pytest.approx(14)
    assert {row.name: row.mean_w for row in report.classes} == {"h100": 500, "mig": 250}


def test_energy_outside_the_range_the_queues_or_without_a_meter_is_left_out(small: Small) -> None:
    took(small.vision, small.h100, kwh=3, gpu_hours=6)
    took(small.vision, small.h100, kwh=0, gpu_hours=6)
    took(small.vision, small.h100, kwh=3, gpu_hours=6, hours_ago=99)
    took(small.platform, small.h100, kwh=3, gpu_hours=6)
    report = energy(small.cluster, small.last(24), small.lead)
    assert (report.kwh, report.total.gpu_hours) == (3, 6)


def test_finding_names_those_that_took_most(small: Small) -> None:
    took(small.vision, small.h100, kwh=3, gpu_hours=6)
    assert str(finding(energy(small.cluster, small.last(), small.operator))) == (
        "3 kWh, 500 W for each GPU that was held."
    )
