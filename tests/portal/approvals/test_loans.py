"""Loans between queues: consent, what they move in the division and when, recall, races."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from portal.approvals import clock
from portal.approvals.loans import doors
from portal.approvals.loans.models import LoanOffer, QuotaLoan
from portal.approvals.loans.states import LoanState
from scheduling.models import MILLI, Announcement, Loan, Quota
from scheduling.services.errors import ServiceError
from scheduling.services.queues import rows as policies
from scheduling.services.queues.save import Field, QuotaCell, save_quotas
from tests.factories import NOW
from tests.portal.approvals.conftest import queue_of, set_clock
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db
UNTIL = NOW + timedelta(days=10)


@pytest.fixture
def h100(cluster):
    return cluster.gpu_classes.get(name=H100)


@pytest.fixture
def ask(cluster, people, h100):
    """``ask(gpus=4)``: search (products) asks vision (research) for h100, by an admin who leads both."""

    def make(lender="vision", borrower="search", gpus=4, until=UNTIL, **more):
        terms = {"reason": "a deadline", "notice_h": 24, "asks": True, "by": people.admin, **more}
        return doors.propose(
            lender=queue_of(cluster, lender), borrower=queue_of(cluster, borrower),
            gpu_class=h100, gpus=gpus * MILLI, until=until, **terms,
        )  # fmt: skip

    return make


@pytest.fixture
def running(ask, people):
    def make(**more):
        return doors.consent(by=people.admin, loan=ask(**more))

    return make


def guaranteed(cluster, name, at=NOW):
    """(nominal, most) of the queue as the engine takes it, GPUs."""
    rows = policies.load(cluster, at=at)
    quota = rows.quotas[queue_of(cluster, name).pk, cluster.gpu_classes.get(name=H100).pk]
    most = None if quota.borrowing_limit is None else quota.nominal + quota.borrowing_limit
    return quota.nominal / MILLI, None if most is None else most / MILLI


def left(offer):
    return LoanOffer.objects.with_left().get(pk=offer.pk).left


def test_ask_moves_nothing_before_its_lender_consents(cluster, ask):
    before = guaranteed(cluster, "search")
    ask()
    assert guaranteed(cluster, "search") == before


def test_loan_moves_the_guarantee_and_not_what_a_queue_may_hold_at_most(cluster, running):
    names = ("vision", "research", "search", "products", "language")
    before = {name: guaranteed(cluster, name) for name in names}
    running(gpus=4)

    moved = {name: guaranteed(cluster, name)[0] - before[name][0] for name in names}
    assert moved == {"vision": -4, "research": -4, "search": 4, "products": 4, "language": 0}
    assert {name: guaranteed(cluster, name)[1] for name in names} == {
        name: most for name, (_, most) in before.items()
    }


def test_loan_inside_a_department_leaves_the_department_as_it_is(cluster, running):
    before = guaranteed(cluster, "research")
    running(lender="vision", borrower="alignment")
    assert guaranteed(cluster, "research") == before


@pytest.mark.parametrize(("at", "moved"), [
    (NOW, 4), (UNTIL - timedelta(seconds=1), 4), (UNTIL, 0), (UNTIL + timedelta(days=1), 0),
])  # fmt: skip
def test_loan_holds_from_consent_to_its_end_by_itself(cluster, running, at, moved):
    before = guaranteed(cluster, "search")[0]
    running(gpus=4)
    assert guaranteed(cluster, "search", at)[0] == before + moved


def test_edit_of_the_granted_nominal_during_a_loan_is_kept_past_its_end(cluster, people, running):
    running(gpus=4)
    edit(cluster, people, "vision", 12)
    assert guaranteed(cluster, "vision")[0] == 8
    assert guaranteed(cluster, "vision", UNTIL)[0] == 12


def test_lender_that_is_granted_less_than_it_lends_lends_what_it_has(cluster, people, running):
    search = guaranteed(cluster, "search")[0]
    running(gpus=4)
    edit(cluster, people, "vision", 3)
    assert guaranteed(cluster, "vision")[0] == 0
    assert guaranteed(cluster, "search")[0] == search + 3


def edit(cluster, people, name, nominal):
    save_quotas(
        queue=queue_of(cluster, "research"), author=people.admin, reason="other",
        cells=[QuotaCell(name, H100, Field.NOMINAL, Decimal(nominal))],
    )  # fmt: skip


def test_recall_ends_it_after_its_notice_and_can_be_undone(cluster, people, running):
    before = guaranteed(cluster, "search")[0]
    loan = running(gpus=4)
    doors.recall(by=people.lead, loan=loan)
    after = NOW + timedelta(hours=24)
    assert guaranteed(cluster, "search", after - timedelta(seconds=1))[0] == before + 4
    assert guaranteed(cluster, "search", after)[0] == before

    doors.undo_recall(by=people.lead, loan=loan)
    assert guaranteed(cluster, "search", after)[0] == before + 4


def test_borrower_gives_it_back_at_once(cluster, people, running):
    before = guaranteed(cluster, "search")[0]
    doors.give_back(by=people.admin, loan=running())
    assert guaranteed(cluster, "search")[0] == before


@pytest.mark.parametrize(("terms", "field"), [
    ({"gpus": 17}, "gpus"),
    ({"gpus": 0}, "gpus"),
    ({"until": NOW}, "until"),
    ({"borrower": "vision"}, "borrower"),
    ({"borrower": "research"}, "borrower"),
    ({"reason": " "}, "reason"),
    ({"notice_h": -1}, "notice_h"),
])  # fmt: skip
def test_terms_that_cannot_be_are_refused_at_their_field(ask, terms, field):
    with pytest.raises(ServiceError) as refused:
        ask(**terms)
    assert refused.value.field == field
    assert refused.value.remedy
    assert not QuotaLoan.objects.exists()


def test_what_is_lent_is_not_lent_twice_at_one_time(running, ask, people):
    running(gpus=12)
    with pytest.raises(ServiceError, match="has 4 "):
        ask(gpus=5)
    assert ask(gpus=4)


def test_department_that_lent_its_nominal_has_none_that_its_queues_could_lend(running, ask):
    running(lender="research", borrower="products", gpus=60)
    with pytest.raises(ServiceError, match="has 4 "):
        ask(lender="vision", borrower="search", gpus=5)


def test_guarantees_add_up_to_what_was_granted_whoever_lends(cluster, people, running):
    """Of the top queues, also where a lender was granted less since."""
    tops = [
        queue.name for queue in cluster.queues.filter(parent__parent=None, parent__isnull=False)
    ]
    running(lender="vision", borrower="search", gpus=8)
    running(lender="research", borrower="platform", gpus=20)
    edit(cluster, people, "vision", 2)
    granted = Quota.objects.filter(queue__name__in=tops, gpu_class__name=H100).in_force(NOW)
    total = sum(granted.values_list("nominal_gpus", flat=True)) / MILLI
    assert sum(guaranteed(cluster, name)[0] for name in tops) == total


def test_offer_is_asked_for_as_it_stands(cluster, people, ask, h100):
    offer = doors.offer_to_all(
        by=people.lead, lender=queue_of(cluster, "speech"), gpu_class=h100, gpus=4 * MILLI,
        until=UNTIL, notice_h=24,
    )  # fmt: skip
    with pytest.raises(ServiceError) as refused:
        ask(lender="vision", offer=offer)
    assert refused.value.field == "offer"


def test_who_leads_neither_side_decides_nothing(ask, people):
    loan = ask()
    for verb in (doors.consent, doors.decline, doors.withdraw):
        with pytest.raises(ServiceError, match="other side"):
            verb(by=people.neighbour, loan=loan)


def test_second_of_two_who_decide_is_told_that_it_moved_on(ask, people):
    loan = ask()
    stale = QuotaLoan.objects.get(pk=loan.pk)
    doors.consent(by=people.lead, loan=loan)
    for late in (doors.consent, doors.decline):
        with pytest.raises(ServiceError) as refused:
            late(by=people.admin, loan=stale)
        assert refused.value.code == "moved_on"
    assert Loan.objects.count() == 1


def test_consent_after_the_quota_was_lent_elsewhere_leaves_the_ask_open(ask, running, people):
    first = ask(gpus=10)
    running(gpus=10)
    with pytest.raises(ServiceError) as refused:
        doors.consent(by=people.lead, loan=first)
    assert refused.value.code == "lends_too_much"
    assert QuotaLoan.objects.get(pk=first.pk).state == LoanState.ASKED


def test_offer_to_all_is_taken_in_parts_and_no_further(cluster, people, ask, h100):
    offer = doors.offer_to_all(
        by=people.lead, lender=queue_of(cluster, "vision"), gpu_class=h100, gpus=6 * MILLI,
        until=UNTIL, notice_h=24,
    )  # fmt: skip
    first, second = ask(gpus=4, offer=offer), ask(gpus=4, offer=offer)
    doors.consent(by=people.lead, loan=first)
    assert left(offer) == 2 * MILLI
    with pytest.raises(ServiceError) as refused:
        doors.consent(by=people.lead, loan=second)
    assert refused.value.code == "more_than_offered"
    doors.consent(by=people.lead, loan=second, gpus=2 * MILLI)
    assert left(offer) == 0


def test_withdrawn_offer_lets_what_was_lent_of_it_run(cluster, people, ask, h100):
    offer = doors.offer_to_all(
        by=people.lead, lender=queue_of(cluster, "vision"), gpu_class=h100, gpus=6 * MILLI,
        until=UNTIL, notice_h=24,
    )  # fmt: skip
    loan = doors.consent(by=people.lead, loan=ask(gpus=4, offer=offer))
    doors.withdraw_offer(by=people.lead, offer=offer)
    assert QuotaLoan.objects.get(pk=loan.pk).state == LoanState.RUNNING
    offer.refresh_from_db()
    with pytest.raises(ServiceError, match="withdrawn"):
        ask(gpus=1, offer=offer)


@pytest.mark.parametrize("step", [doors.give_back, doors.recall, doors.undo_recall])
def test_loan_that_is_over_is_over_before_the_clock_has_noted_it(cluster, people, running, step):
    loan = running()
    if step is doors.undo_recall:
        doors.recall(by=people.admin, loan=loan)
    ended = Loan.objects.get().ends_at
    set_clock(cluster, ended + timedelta(minutes=1))

    with pytest.raises(ServiceError) as refused:
        step(by=people.admin, loan=QuotaLoan.objects.get())
    assert refused.value.code == "moved_on"
    assert Loan.objects.get().ends_at == ended


def test_what_a_department_borrows_is_lent_on_no_longer_than_it_has_it(running, ask):
    running(lender="research", borrower="products", gpus=60, until=UNTIL + timedelta(days=30))
    running(lender="platform", borrower="research", gpus=8)
    assert ask(gpus=10)
    with pytest.raises(ServiceError, match="has 4 "):
        ask(gpus=10, until=UNTIL + timedelta(days=1))


def test_queries_of_a_pass_do_not_grow_with_loans(cluster, running):
    counts = []
    for _ in range(2):
        running(gpus=1)
        with CaptureQueriesContext(connection) as seen:
            policies.load(cluster, at=NOW)
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_clock_says_once_that_it_ends_and_notes_that_it_has(cluster, running):
    loan = running()
    set_clock(cluster, UNTIL - timedelta(hours=1))
    assert [clock.advance_loans(cluster) for _ in range(2)] == [1, 0]
    set_clock(cluster, UNTIL)
    assert [clock.advance_loans(cluster) for _ in range(2)] == [1, 0]
    assert QuotaLoan.objects.get(pk=loan.pk).state == LoanState.ENDED
    assert list(Announcement.objects.order_by("pk").values_list("kind", flat=True)) == [
        "loan.ask",
        "loan.consent",
        "loan.near_end",
        "loan.end",
    ]


def test_quota_rows_stay_as_they_were_granted(cluster, running):
    before = list(Quota.objects.order_by("pk").values())
    running()
    assert list(Quota.objects.order_by("pk").values()) == before


def test_preview_by_api_of_what_is_granted_already_moves_nothing_of_what_is_lent(
    cluster, running, people, monkeypatch
):
    running(gpus=4)
    asked = []

    def refuse(cluster, document):
        asked.extend(document)
        raise ServiceError("cluster_unreachable", "It does not answer.", "Ask again.")

    monkeypatch.setattr("portal.api.quotas.preview", refuse)
    lender = Loan.objects.get().lender
    granted = Quota.objects.in_force(NOW).get(queue=lender, gpu_class__name=H100).nominal_gpus
    cell = {"queue": lender.name, "gpu_class": H100, "field": "nominal", "value": granted / MILLI}

    client = APIClient()
    client.force_authenticate(people.admin)
    client.post(f"/api/v1/clusters/{cluster.name}/quotas/preview", {"cells": [cell]}, format="json")

    guarantee, _ = guaranteed(cluster, lender.name)
    assert [change["nominal_gpus"] for change in asked] == [guarantee]
    assert guarantee == granted / MILLI - 4
