"""The pages of loans: asked, looked at with what it does, consented to, recalled."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.approvals.loans import previews
from portal.approvals.models import LoanOffer, QuotaLoan
from portal.plans import asking
from scheduling.models import MILLI, Share, UsageSample
from scheduling.models.ledger import Resolution
from tests.factories import example_cluster, make_user
from tests.portal.kubernetes import serving
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db
URL = "/c/fra1/loans/"
TYPED = {"kind": "ask", "lender": "vision", "borrower": "alignment", "gpu_class": H100, "gpus": "4",
         "until": "2030-12-18T18:00", "notice_h": "24", "reason": "DPO runs"}  # fmt: skip


@pytest.fixture
def cluster():
    """The example organisation over an API server that answers."""
    made = example_cluster()
    with serving(made):
        yield made


@pytest.fixture
def loan(cluster, as_user):
    as_user("lead").post(f"{URL}new/", TYPED)
    return QuotaLoan.objects.get()


def text(answer):
    return " ".join(answer.content.decode().split())


def test_ask_waits_on_the_page_of_its_lender(loan, as_user):
    told = text(as_user("lead").get(URL))
    assert f"alignment asks for 4 {H100} of vision" in told
    assert "Your turn" in told


def test_form_begins_without_another_side(cluster, as_user):
    told = text(as_user("lead").get(f"{URL}new/"))
    assert told.count('<option value="" selected>Choose a queue') == 1


def test_lender_sees_what_it_does_before_consenting(loan, as_user):
    told = text(as_user("lead").get(f"{URL}{loan.pk}/"))
    assert "If you consent" in told
    assert "planned at" in told
    assert f"Fair share now of {H100}" in told


def test_loan_that_evicts_more_than_it_lends_warns(loan, as_user, monkeypatch):
    line = {
        "kind": "leaves", "workload": "vision/gang", "queue": "vision", "gpus": 16, "lost_gpu_hours": 2,
        "reason": "reclaimed", "sentence": "It goes.", "sealed": "", "numbers": {}, "late": False,
    }  # fmt: skip
    told = {
        "at": "2026-11-27T10:00:00+00:00",
        "took_s": 0.1,
        "shares": [],
        "lesser": [],
        "changes": [],
    }
    monkeypatch.setattr(previews, "planned", lambda loan, gpus: {**told, "lines": [line]})
    assert "Lending 4 evicts work on 16 GPUs, more than is lent" in text(
        as_user("lead").get(f"{URL}{loan.pk}/")
    )


def test_consent_to_less_runs_and_keeps_what_was_expected(loan, as_user):
    lead = as_user("lead")
    assert lead.post(f"{URL}{loan.pk}/consent/", {"gpus": "2"}).status_code == 302
    loan.refresh_from_db()
    assert (loan.state, loan.gpus) == ("running", 2 * MILLI)
    assert loan.expected["changes"]
    listed = text(lead.get(URL))
    assert "alignment</a> has" in listed
    assert listed.count('data-label="Nominal, held"') == 2


@pytest.mark.parametrize(
    ("queue", "nominal", "word"), [("vision", 14, "lent"), ("alignment", 14, "borrowed")]
)
def test_loan_shows_in_the_bar_once_the_division_knows_it(loan, as_user, queue, nominal, word):
    lead, page = as_user("lead"), f"/c/fra1/queues/{queue}/?class={H100}"
    lead.post(f"{URL}{loan.pk}/consent/", {"gpus": "2"})
    share = {"queue": loan.cluster.queues.get(name=queue), "gpu_class": loan.gpu_class}
    Share.objects.update_or_create(
        **share, defaults={"nominal": (16 if word == "lent" else 12) * MILLI}
    )
    assert "by loans" not in text(lead.get(page))

    Share.objects.filter(**share).update(nominal=nominal * MILLI)
    assert f"with 2 {word} by loans" in text(lead.get(page))


def test_recall_says_when_before_its_button(loan, as_user):
    lead = as_user("lead")
    lead.post(f"{URL}{loan.pk}/consent/")
    told = text(lead.get(f"{URL}{loan.pk}/"))
    assert f"Recall 4 {H100} from alignment?" in told
    assert "It keeps what it holds as long as that is free" in told
    lead.post(f"{URL}{loan.pk}/recall/")
    assert "Undo the recall" in text(lead.get(f"{URL}{loan.pk}/"))


@pytest.mark.parametrize(("typed", "told"), [
    ({"gpus": "40"}, "Lend 16 at most"),
    ({"gpus": ""}, "Write how many GPUs."),
    ({"until": "soon"}, "Write a time as"),
    ({"until": "2020-01-01T00:00"}, "Choose a later end."),
    ({"lender": "alignment"}, "Lend to a queue of another branch"),
])  # fmt: skip
def test_terms_that_cannot_be_are_typed_again(cluster, as_user, typed, told):
    answer = as_user("lead").post(f"{URL}new/", TYPED | typed)
    assert answer.status_code == 400
    assert told in text(answer)
    assert "DPO runs" in text(answer)
    assert not QuotaLoan.objects.exists()


def test_offer_to_all_is_asked_for_with_its_terms(cluster, as_user):
    lead = as_user("lead")
    lead.post(f"{URL}new/", {**TYPED, "kind": "offer"})
    offer = LoanOffer.objects.get()
    assert "Offered to all" in text(lead.get(URL))
    form = text(lead.get(f"{URL}new/?kind=ask&offer={offer.pk}"))
    assert "are offered until" in form
    assert lead.post(f"{URL}offers/{offer.pk}/withdraw/").status_code == 302
    offer.refresh_from_db()
    assert offer.withdrawn_at


def test_nominal_that_was_held_in_no_hour_of_a_week_could_be_offered(cluster, as_user):
    vision, gpu_class = cluster.queues.get(name="vision"), cluster.gpu_classes.get(name=H100)
    at = cluster.now().replace(minute=0, second=0, microsecond=0)
    for hours, held in ((1, 3_000), (30, 5_500), (200, 16_000)):
        UsageSample.objects.create(
            queue=vision, gpu_class=gpu_class, start=at - timedelta(hours=hours), seconds=3600,
            resolution=Resolution.HOUR, allocated_gpus=held,
        )  # fmt: skip
    assert f"10 {H100}: held in no hour of the last 7 days" in text(as_user("lead").get(URL))


def test_late_step_is_told_what_happened(loan, as_user):
    lead = as_user("lead")
    lead.post(f"{URL}{loan.pk}/decline/")
    answer = lead.post(f"{URL}{loan.pk}/consent/")
    assert answer.status_code == 409
    assert "has moved on" in text(answer)


def test_who_leads_nothing_finds_no_page(cluster, as_user):
    make_user("nobody-here")
    for name in ("researcher", "nobody-here"):
        assert as_user(name).get(URL).status_code == 404


def test_loan_stands_before_its_plan_and_follows_it(loan, as_user, monkeypatch):
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    told = text(as_user("lead").get(f"{URL}{loan.pk}/"))

    assert "The engine plans it" in told
    assert 'hx-select="#told" hx-swap="outerHTML" hx-select-oob="#lend,#planned"' in told
    assert "evict" not in told.partition("If you consent")[2]


@pytest.mark.parametrize("verbs", [("consent",), ("consent", "give-back")])
def test_guarantee_is_that_of_now_and_no_fair_share_older_than_it_is_shown(loan, as_user, verbs):
    lead = as_user("lead")
    gives = {"queue": loan.lender, "gpu_class": loan.gpu_class}
    gets = {"queue": loan.borrower, "gpu_class": loan.gpu_class}
    divided = (16, 12) if len(verbs) == 1 else (12, 16)
    for share, nominal in ((gives, divided[0]), (gets, divided[1])):
        Share.objects.update_or_create(
            **share, defaults={"nominal": nominal * MILLI, "fair_share": 7 * MILLI, "allocated": 12 * MILLI}
        )  # fmt: skip
    for verb in verbs:
        assert lead.post(f"{URL}{loan.pk}/{verb}/").status_code == 302
    page = text(lead.get(f"{URL}{loan.pk}/"))
    sides = page.partition("Both sides now")[2].partition("</section>")[0]

    told = [(12, "−4"), (16, "+4")] if len(verbs) == 1 else [(16, "0"), (12, "0")]
    for guaranteed, by in told:
        by_loans = [
            part.partition("</td>")[0] for part in sides.split('data-label="By loans">')[1:]
        ]
        assert any(by in part for part in by_loans)
        assert f"<b>{guaranteed}</b>" in sides
    assert 'data-label="Fair share">–</td>' in sides
    assert sides.count("The next cycle divides it so.") == 2
    assert "Held in full" not in page
