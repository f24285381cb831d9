"""What sharing was worth to whom, and who ended later than alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.reports.fairness import fairness
from portal.selectors.queue import lead
from scheduling.models import Cycle, Decision, Outcome, Queue, State, Workload
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db


def over(small: Small, queue: Queue, *, ahead_s: float, ran_s: float = 3600, **fields) -> Workload:
    """One that ended an hour before the end of the range, so far ahead of its own quota."""
    finished = END - HOUR
    started = finished - timedelta(seconds=ran_s)
    return make_workload(
        queue,
        state=State.FINISHED,
        outcome=Outcome.SUCCEEDED,
        gpu_class=small.h100,
        submitted_at=started - timedelta(seconds=600),
        started_at=started,
        first_started_at=started,
        finished_at=finished,
        virtual_start_at=started + timedelta(seconds=ahead_s),
        **fields,
    )


def test_queues_stand_by_what_sharing_was_worth_to_them(small: Small) -> None:
    over(small, small.vision, ahead_s=7200)
    over(small, small.vision, ahead_s=3600)
    over(small, small.platform, ahead_s=-1800)
    report = fairness(small.cluster, small.last(), small.operator)
    assert [(row.name, row.lead_s, row.ended) for row in report.queues] == [
        ("vision", pytest.approx(5400), 2),
        ("platform", pytest.approx(-1800), 1),
    ]
    assert report.lead_s == pytest.approx(3000)


def test_who_ended_later_than_alone_is_named_with_the_reason_of_the_wait(small: Small) -> None:
    work = over(small, small.platform, ahead_s=-1800)
    Decision.objects.create(
        cycle=Cycle.objects.create(cluster=small.cluster, number=1, at=END - HOUR),
        workload=work,
        action="wait",
        reason="at_limit",
    )
    over(small, small.platform, ahead_s=-30)
    report = fairness(small.cluster, small.last(), small.operator)
    [row] = report.late
    assert (row.work, row.cause) == (work, "at_limit")
    assert row.late_s == pytest.approx(1800)
    assert report.causes == ((row.why, 1),)


def test_names_are_of_work_that_the_person_may_see(small: Small) -> None:
    over(small, small.platform, ahead_s=-1800)
    assert fairness(small.cluster, small.last(), small.lead).is_empty
    over(small, small.vision, ahead_s=-1800)
    report = fairness(small.cluster, small.last(), small.researcher)
    assert [row.work.queue.name for row in report.late] == ["vision"]


def test_work_that_nobody_played_along_is_left_out(small: Small) -> None:
    work = over(small, small.vision, ahead_s=0)
    Workload.objects.filter(pk=work.pk).update(virtual_start_at=None)
    assert fairness(small.cluster, small.last(), small.operator).is_empty


def test_queue_says_what_sharing_is_worth_over_its_subtree(small: Small) -> None:
    over(small, small.vision, ahead_s=7200)
    over(small, small.speech, ahead_s=3600)
    found = lead(small.cluster, small.research, END)
    assert (found.ended, found.late) == (2, 0)
    assert found.text == "1 h 30 min ahead of its own quota"


def test_page_gives_the_finding_and_the_causes(small: Small) -> None:
    over(small, small.vision, ahead_s=7200)
    over(small, small.platform, ahead_s=-1800)
    client = Client()
    client.force_login(small.operator)
    span = {"from": f"{END - 24 * HOUR:%Y-%m-%dT%H:%MZ}", "to": f"{END:%Y-%m-%dT%H:%MZ}"}
    text = client.get(reverse("reports:fairness", args=[small.cluster.name]), span).content.decode()
    assert "ahead of the quota of its queue alone; 1 of 2 ended later than alone." in text
    assert "platform is behind on average." in text
    assert "Not known: its waits are no longer kept" in text
