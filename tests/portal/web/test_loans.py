"""The pages of loans: asked, looked at with what it does, consented to, recalled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.html import strip_tags

from portal.approvals.loans import previews
from portal.approvals.loans.states import LoanState
from portal.approvals.models import LoanOffer, QuotaLoan
from portal.plans import asking
from portal.web.frame.pages import PAGE
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


def test_lender_sees_each_side_now_and_with_the_loan(loan, as_user):
    for queue, figures in ((loan.lender, (16, 8)), (loan.borrower, (12, 12))):
        nominal, held = (one * MILLI for one in figures)
        Share.objects.update_or_create(
            queue=queue, gpu_class=loan.gpu_class,
            defaults={"nominal": nominal, "allocated": held, "demand": held, "fair_share": held},
        )  # fmt: skip
    told = text(as_user("lead").get(f"{URL}{loan.pk}/"))
    sides = told.partition('id="consent"')[2].partition("</table>")[0]

    assert sides.count("with the loan</span>") == 2
    assert "vision with the loan: 8 allocated" in sides
    assert "nominal 16 with 4 lent by loans" in sides
    assert "nominal 12 with 4 borrowed by loans" in sides
    assert [part[:2] for part in sides.split('data-label="Guaranteed"><b>')[1:]] == [
        "16",
        "12",
        "12",
        "16",
    ]


def test_shares_of_both_moments_are_of_one_plan(loan, as_user, monkeypatch):
    shares = [
        {"queue": name, "gpu_class": H100, "fair_share": pair, "potential": pair, "allocated": 0}
        for name, pair in (("vision", (9, 8)), ("alignment", (13, 16)))
    ]
    answer = {"at": "2026-11-27T10:00:00+00:00", "took_s": 0.1, "shares": shares, "lesser": [],
              "changes": [], "lines": []}  # fmt: skip
    monkeypatch.setattr(previews, "planned", lambda loan, gpus: answer)
    for queue, fair in ((loan.lender, 11), (loan.borrower, 20)):
        Share.objects.update_or_create(
            queue=queue, gpu_class=loan.gpu_class, defaults={"fair_share": fair * MILLI}
        )
    told = text(as_user("lead").get(f"{URL}{loan.pk}/"))
    parts = told.partition('id="consent"')[2].split('data-label="Fair share">')[1:]
    assert [part.partition("<")[0] for part in parts][:4] == ["9", "8", "13", "16"]


def test_list_opens_what_waits_for_the_reader_where_it_is_decided(loan, as_user):
    told = text(as_user("lead").get(URL))
    assert f'hx-get="{URL}{loan.pk}/" hx-trigger="load" hx-select="#consent"' in told
    assert told.count("button-primary") == 1


def test_lender_recalls_in_the_row_of_the_loan(loan, as_user):
    lead = as_user("lead")
    lead.post(f"{URL}{loan.pk}/consent/")
    assert f'hx-select="#recall" hx-target="#recall-{loan.pk}"' in text(lead.get(URL))
    assert 'id="recall"' in text(lead.get(f"{URL}{loan.pk}/"))


def test_division_of_a_lent_class_closes_in_its_sums(loan, as_user):
    lead = as_user("lead")
    lead.post(f"{URL}{loan.pk}/consent/")
    told = (
        text(lead.get(URL))
        .partition(f'aria-label="In the division, {H100}"')[2]
        .partition("</table>")[0]
    )
    rows = [row.partition("</tr>")[0] for row in told.split('<th scope="row"')[1:]]
    found = {
        row.partition("</a>")[0].rpartition(">")[2]: [
            strip_tags(f"<b>{row.partition(mark)[2].partition('</td>')[0]}")
            for mark in ('data-label="by loans">', 'data-label="guaranteed">')
        ]
        for row in rows
    }
    assert found["vision"] == ["−4", "12"]
    assert found["alignment"] == ["+4", "16"]
    assert found["research"] == ["0", "64"]


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


def test_ended_loans_are_told_a_page_at_a_time(loan, as_user):
    columns = [field.attname for field in loan._meta.concrete_fields if not field.primary_key]
    fields = {name: getattr(loan, name) for name in columns} | {"state": LoanState.ENDED}
    QuotaLoan.objects.bulk_create(QuotaLoan(**fields) for _ in range(PAGE + 1))
    client = as_user("admin")
    first, last = client.get(URL), client.get(f"{URL}?page=2")
    assert [len(answer.context["page"].over) for answer in (first, last)] == [PAGE, 1]
    assert 'id="ended" open' in text(last)
    assert 'id="ended" open' not in text(first)


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
    assert "Lend (not planned yet)</button>" in told


def test_recall_stands_before_its_plan_and_says_so(loan, as_user, monkeypatch):
    lead = as_user("lead")
    lead.post(f"{URL}{loan.pk}/consent/")
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    told = text(lead.get(f"{URL}{loan.pk}/"))
    assert "Recall 4 (not planned yet)</button>" in told
    assert 'hx-select-oob="#recall-it"' in told


def test_borrower_of_an_offer_borrows_with_its_button(cluster, as_user):
    as_user("lead").post(f"{URL}new/", TYPED | {"kind": "lend"})
    told = text(as_user("lead").get(f"{URL}{QuotaLoan.objects.get().pk}/"))
    assert "Borrow" in told.partition('id="lend"')[2].partition("</button>")[0]


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
