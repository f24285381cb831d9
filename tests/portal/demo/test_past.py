"""A past that is lived in the simulator and written down: what it costs, and that it adds up."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.models import Cycle, Decision, ForecastOutcome, GpuUse, State, Transition, Workload
from scheduling.services.tables.bulk import ROWS
from tests.portal.demo.past import lived, organisation
from workshop.demo.past import live
from workshop.demo.past.forecasts import tell_past
from workshop.demo.week import BEGIN, snapshot
from workshop.scenario import generate

pytestmark = pytest.mark.django_db

STATEMENTS = 12
"""Of writing a past, beside those that insert ``ROWS`` rows whose keys are needed."""


def test_past_is_written_in_a_few_statements_however_long_it_is() -> None:
    past = lived(organisation(), 12)
    with CaptureQueriesContext(connection) as written:
        past.save()
    keyed = len(past.workloads) // ROWS + 1 + Cycle.objects.count() // ROWS + 1
    assert Workload.objects.count() == len(past.workloads) > 50
    assert len(written) <= STATEMENTS + keyed


def test_days_are_told_as_they_are_lived() -> None:
    cluster = organisation()
    asked = live.demand_of(cluster, snapshot(cluster), **live.DEMAND)
    submissions = list(generate(asked, BEGIN, 3, live.SEED))
    said: list[str] = []
    followed = live._followed(submissions, BEGIN, BEGIN + timedelta(days=3), said.append)
    assert list(followed) == submissions
    assert said == ["Lived 1 of 3 days", "Lived 2 of 3 days"]


def test_every_step_and_decision_points_at_its_workload() -> None:
    past = lived(organisation(), 5)
    past.save()
    assert not Transition.objects.filter(workload=None).exists()
    started = Workload.objects.exclude(first_started_at=None)
    assert Decision.objects.filter(action="admit", cycle__isnull=False).count() >= started.count()


def test_gpu_hours_of_use_are_those_that_work_held() -> None:
    past = lived(organisation(), 5)
    past.save()
    for work in Workload.objects.filter(state=State.FINISHED, eviction_count=0)[:50]:
        measured = sum(GpuUse.objects.filter(workload=work).values_list("gpu_s", flat=True))
        assert measured == pytest.approx(work.used_gpu_s)


def test_starts_are_told_from_what_was_known_then() -> None:
    cluster = organisation()
    past = lived(cluster, 13)
    past.save()
    moments = [moment.now for moment in past.moments]
    done = list(tell_past(cluster, past.moments))

    assert done == list(range(1, len(moments) + 1))
    told = list(ForecastOutcome.objects.select_related("workload"))
    assert {one.told_at for one in told} <= set(moments)
    assert all(one.workload.submitted_at <= one.told_at for one in told)
    first = [one for one in told if one.at_submission]
    assert len(first) == len({one.workload_id for one in first}) > 0


def test_what_was_told_of_the_same_work_since_is_no_longer_the_first() -> None:
    cluster = organisation()
    past = lived(cluster, 13)
    past.save()
    list(tell_past(cluster, past.moments))
    before = ForecastOutcome.objects.filter(at_submission=True).count()
    list(tell_past(cluster, past.moments))
    assert ForecastOutcome.objects.filter(at_submission=True).count() == before
