"""Who waited longest and why: time by reason, within the range, of whom one may see."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse

from portal.reports.longest import BY_REASON, longest
from portal.reports.words import longest_finding
from scheduling.models import Action, Cycle, Decision, Reason, State, Transition, Workload
from tests.factories import make_workload
from tests.portal.reports.conftest import END, HOUR, Small
from tests.portal.reports.test_waits import started

pytestmark = pytest.mark.django_db


def waits_for(work: Workload, at: datetime, reason: Reason, **said: object) -> None:
    cycle = Cycle.objects.create(cluster=work.cluster, number=Cycle.objects.count() + 1, at=at)
    Decision.objects.create(cycle=cycle, workload=work, action=Action.WAIT, reason=reason, **said)


def hours(report) -> dict[str, float]:
    return {row.cause.name: round(row.hours, 3) for row in report.causes}


def test_time_is_told_by_reason_until_the_first_start(small: Small) -> None:
    work = started(small.vision, small.h100, wait_s=4 * 3600)
    begun = work.submitted_at
    waits_for(work, begun + timedelta(minutes=1), Reason.ABOVE_FAIR_SHARE)
    waits_for(work, begun + HOUR, Reason.FRAGMENTED)
    waits_for(work, begun + 3 * HOUR, Reason.NO_FREE_GPUS)
    report = longest(small.cluster, small.last(), small.operator)
    assert hours(report) == {"fragmented": 2.0, "share": 1.0, "room": 1.0}
    assert report.hours == pytest.approx(4.0)


def test_wait_is_clipped_at_the_edges_of_the_range(small: Small) -> None:
    filters = small.last()
    waiting = make_workload(
        small.vision, gpu_classes=["h100"], state=State.PENDING,
        submitted_at=filters.start - 5 * HOUR,
    )  # fmt: skip
    waits_for(waiting, filters.start - 5 * HOUR, Reason.AT_LIMIT)
    report = longest(small.cluster, filters, small.operator)
    assert hours(report) == {"limit": pytest.approx(filters.span / HOUR)}


def test_classes_add_up_to_all_though_work_waits_still_or_again(small: Small) -> None:
    started(small.vision, small.h100, wait_s=3600)
    again = started(small.vision, small.h100, wait_s=7200)
    Transition.objects.create(
        workload=again, at=END - HOUR, to_state=State.RUNNING, gpus=1000, gpu_class=small.h100
    )
    Workload.objects.filter(pk=again.pk).update(
        gpu_class=None, gpu_classes=["mig"], state=State.REQUEUED, finished_at=None
    )
    make_workload(
        small.vision, gpu_classes=["mig", "h100"], state=State.PENDING, submitted_at=END - 4 * HOUR
    )
    hours_of = {
        name: longest(small.cluster, small.last(gpu_classes=names), small.operator).hours
        for name, names in (("all", ()), ("h100", ("h100",)), ("mig", ("mig",)))
    }
    assert hours_of == {"all": pytest.approx(7), "h100": pytest.approx(3), "mig": pytest.approx(4)}


def test_what_the_ledger_no_longer_knows_is_said_so(small: Small) -> None:
    started(small.vision, small.h100, wait_s=3600)
    assert hours(longest(small.cluster, small.last(), small.operator)) == {"unknown": 1.0}


def test_longest_come_first_and_only_those_that_one_may_see_are_named(small: Small) -> None:
    first = started(small.vision, small.h100, wait_s=2 * 3600)
    second = started(small.speech, small.h100, wait_s=3600)
    started(small.platform, small.h100, wait_s=9 * 3600)
    report = longest(small.cluster, small.last(), small.lead)
    assert [row.work for row in report.rows] == [first, second]
    assert [path for path, _, _ in report.queues] == ["research/vision", "research/speech"]


def test_who_started_at_once_or_was_over_before_is_not_counted(small: Small) -> None:
    started(small.vision, small.h100, wait_s=0)
    started(small.vision, small.h100, wait_s=60, at=END - 400 * HOUR)
    assert longest(small.cluster, small.last(), small.operator).is_empty


def test_part_of_quota_is_compared_with_the_period_before(small: Small) -> None:
    filters = small.last(compare=True)
    before = started(small.vision, small.h100, wait_s=3600, at=filters.start - HOUR)
    waits_for(before, before.submitted_at, Reason.AT_LIMIT)
    make_workload(
        small.vision,
        submitted_at=filters.before().start,
        finished_at=filters.before().start,
        state=State.FINISHED,
    )
    after = started(small.vision, small.h100, wait_s=3600)
    waits_for(after, after.submitted_at, Reason.NO_FREE_GPUS)
    report = longest(small.cluster, filters, small.operator)
    assert (report.share("share", "limit"), report.before_quota_share) == (0.0, 1.0)


def test_period_before_that_work_does_not_reach_back_to_is_not_compared_with(small: Small) -> None:
    filters = small.last(compare=True)
    before = started(small.vision, small.h100, wait_s=3600, at=filters.start - HOUR)
    waits_for(before, before.submitted_at, Reason.AT_LIMIT)
    assert longest(small.cluster, filters, small.operator).before_quota_share is None


def test_period_before_whose_reasons_are_not_known_is_not_compared_with(small: Small) -> None:
    filters = small.last(compare=True)
    started(small.vision, small.h100, wait_s=3600, at=filters.start - HOUR)
    started(small.vision, small.h100, wait_s=3600)
    assert longest(small.cluster, filters, small.operator).before_quota_share is None


def test_every_reason_to_wait_has_a_cause() -> None:
    acts = {
        Reason.FITS_NOMINAL, Reason.BORROWS, Reason.RECLAIMED, Reason.PREEMPTED, Reason.GIVES_WAY,
        Reason.STALE_GANG, Reason.DRAINED, Reason.GROWS, Reason.SHRINKS, Reason.CONSOLIDATES,
        Reason.CLAIM_LAPSED,
    }  # fmt: skip
    assert BY_REASON.keys() == {reason.value for reason in set(Reason) - acts}


def page_of(user: object) -> str:
    client = Client()
    client.force_login(user)  # type: ignore[arg-type]
    span = {"from": f"{END - 30 * HOUR:%Y-%m-%dT%H:%MZ}", "to": f"{END:%Y-%m-%dT%H:%MZ}"}
    return client.get(reverse("reports:longest", args=["fra1"]), span).content.decode()


def test_nodes_that_were_down_are_a_reason_of_their_own(small: Small) -> None:
    work = started(small.vision, small.h100, wait_s=4 * 3600)
    waits_for(work, work.submitted_at, Reason.NODES_OUT)
    report = longest(small.cluster, small.last(), small.operator)
    assert hours(report) == {"down": 4.0}
    assert "100 % nodes that were down" in longest_finding(report).bold


def test_page_ranks_who_waited_and_gives_the_numbers_of_the_main_reason(small: Small) -> None:
    work = started(small.vision, small.h100, wait_s=4 * 3600)
    for hour, reason, sentence in (
        (0, Reason.AT_LIMIT, "It holds 2 of its limit of 8."),
        (1, Reason.AT_LIMIT, "It holds 8 of its limit of 8."),
        (3, Reason.FRAGMENTED, "6 are free on 4 nodes."),
    ):
        at = work.submitted_at + hour * HOUR
        waits_for(work, at, reason, sentence=sentence, sealed={}, numbers={})
    page = page_of(small.operator)
    assert 'data-label="rank">1<' in page
    assert "It holds 8 of its limit of 8." in page
    assert "It holds 2 of its limit" not in page
    assert "6 are free" not in page


def test_numbers_of_others_stay_with_who_sees_them(small: Small) -> None:
    work = started(small.vision, small.h100, wait_s=4 * 3600)
    waits_for(
        work, work.submitted_at, Reason.WAITS_FOR_TURN, sentence="theirs of platform goes first.",
        sealed={"sentence": "Another goes first.", "workload_queue": "platform"}, numbers={},
    )  # fmt: skip
    assert "theirs of platform goes first." in page_of(small.operator)
    page = page_of(small.lead)
    assert "Another goes first." in page
    assert "theirs of platform" not in page


@pytest.mark.parametrize(
    "reason", [Reason.ABOVE_FAIR_SHARE, Reason.WAITS_FOR_QUOTA, Reason.NON_PREEMPTIBLE_OVER_NOMINAL]
)
def test_page_says_who_and_why(small: Small, reason: Reason) -> None:
    """A queue below its share may wait for it as well: the gang would pass it."""
    work = started(small.vision, small.h100, wait_s=4 * 3600)
    waits_for(work, work.submitted_at, reason)
    waits_for(work, work.submitted_at + HOUR, Reason.FRAGMENTED)
    page = page_of(small.operator)
    assert "Fragmented; then past share or nominal" in page
    assert "25 % of 4 waiting hours were quota: past a share, a nominal or a limit;" in page
    assert work.name in page
