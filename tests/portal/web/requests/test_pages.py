"""Asking and deciding in the browser's forms, and what each page says."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.approvals import doors
from portal.approvals.models import ApprovalRule, QuotaRequest
from portal.approvals.states import State
from portal.plans import asking
from portal.plans.models import PlanQuestion
from scheduling.models import MILLI, Cluster, Study, StudyState, UsageSample
from scheduling.models.ledger import Resolution
from tests.portal.approvals.conftest import nominal, queue_of

pytestmark = pytest.mark.django_db


def client_of(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def url(name: str, *args) -> str:
    return reverse(f"web:{name}", args=["fra1", *args])


TYPED = {
    "kind": "quota", "queue": "alignment", "gpu_class": "h100-80gb", "figure": "nominal", "gpus": "8",
    "giver": "", "starts_at": "", "ends_at": "2026-12-31T00:00", "reason": "DPO runs",
}  # fmt: skip


def test_form_submits_what_was_typed_in_the_readers_zone(cluster, people):
    answer = client_of(people.asker).post(url("request_new"), TYPED)
    made = QuotaRequest.objects.get()
    assert answer.headers["Location"] == url("request", made.pk)
    assert (made.state, made.gpus, made.giver) == (State.SUBMITTED, 8 * MILLI, None)
    assert made.ends_at.isoformat() == "2026-12-30T23:00:00+00:00"


def test_draft_is_kept_edited_and_submitted(cluster, people):
    client = client_of(people.asker)
    client.post(url("request_new"), TYPED | {"draft": "1", "gpus": ""})
    made = QuotaRequest.objects.get()
    assert made.state == State.DRAFT
    text = client.get(url("request_edit", made.pk)).content.decode()
    assert "DPO runs" in text
    assert 'value="2026-12-31T00:00"' in text
    client.post(url("request_edit", made.pk), TYPED)
    made.refresh_from_db()
    assert (made.state, made.gpus) == (State.SUBMITTED, 8 * MILLI)


def test_bad_input_comes_back_with_its_faults(cluster, people):
    answer = client_of(people.asker).post(
        url("request_new"), TYPED | {"gpus": "25", "ends_at": "2020-01-01T00:00"}
    )
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "Ask for 24 at most" in text
    assert "has passed" in text
    assert "DPO runs" in text
    assert not QuotaRequest.objects.exists()


def test_edit_of_what_was_decided_meanwhile_loses_nothing_typed(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    doors.approve(by=people.lead, request=made, note="Yes")
    answer = client_of(people.asker).post(
        url("request_edit", made.pk), TYPED | {"reason": "Typed for long"}
    )
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "has moved on" in text
    assert "Typed for long" in text


def test_outcome_says_who_starts_who_agrees_and_what_is_quicker(cluster, people):
    client = client_of(people.lead)
    text = client.get(url("request_preview"), TYPED | {"giver": "vision"}).content.decode()
    assert "Approved now," in text
    assert "An approver" in text
    assert "nominal 12 → <b>20</b>" in text
    assert not QuotaRequest.objects.exists()


def test_lead_sees_the_plan_and_forwards_and_approver_grants_less(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(giver=None))
    lead, approver = client_of(people.lead), client_of(people.approver)
    text = lead.get(url("request", made.pk)).content.decode()
    assert "Your turn" in text
    assert "Forward to an approver" in text
    assert "Could give it:" in text
    lead.post(url("request_forward", made.pk), {"giver": "vision", "note": "Take it from vision"})
    text = approver.get(url("request", made.pk)).content.decode()
    for told in ("Take it from vision", "Four eyes hold.", "Takes from and gives to", "Approve 8"):
        assert told in text
    answer = approver.post(
        url("request_approve", made.pk), {"note": "Half", "gpus": "4", "giver": "vision"}
    )
    assert answer.status_code == 302
    assert nominal(cluster, "alignment") == 16
    made.refresh_from_db()
    assert made.expected["gpus"] == 4


def test_who_decides_nothing_reads_what_an_approval_would_do(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    for who, head in ((people.asker, "If it is approved"), (people.approver, "If you approve")):
        assert head in client_of(who).get(url("request", made.pk)).content.decode()


def test_amount_to_grant_stands_beside_what_is_asked(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    text = client_of(people.approver).get(url("request", made.pk)).content.decode()
    assert 'id="id_gpus_helptext">of 8<' in text


def test_each_amount_is_lived_again_where_the_approver_wants_it(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    approver = client_of(people.approver)
    page = url("request", made.pk)
    assert "Replay the last week with each" in approver.get(page).content.decode()
    answer = approver.post(url("request_replay", made.pk))
    assert answer.headers["Location"] == page
    assert Study.objects.count() == 3
    Study.objects.update(state=StudyState.RUNNING, progress=30)
    assert (
        "Living the last week again with each amount: 30 %" in approver.get(page).content.decode()
    )

    for study in Study.objects.all():
        given = next(one["nominal_gpus"] for one in study.changes if one["queue"] == "alignment")
        p90 = {"before": 24_000, "after": 24_000 - 600 * (given - 12), "verdict": "shorter"}
        none = {"before": 0, "after": 0, "verdict": "noise"}
        study.answer = {"replay": {
            "queues": [
                {"queue": "alignment", "jobs": 5, "p50_s": p90, "p90_s": p90},
                {"queue": "vision", "jobs": 0, "p50_s": none, "p90_s": none},
            ],
            "figures": {"evictions": {"before": 41, "after": 44}}, "jobs": 1284, "replays": 20,
            "begin": "2026-11-12T00:00:00Z", "end": "2026-11-19T00:00:00Z",
        }}  # fmt: skip
        study.state = StudyState.DONE
        study.save()
    told = " ".join(approver.get(page).content.decode().split()).partition('id="lesser"')[2]

    waits = [
        [
            part.partition("</td>")[0]
            for part in row.partition("</tr>")[0].split('<td class="num">')[4:]
        ]
        for row in told.partition("</table>")[0].split("<tr")[2:]
    ]
    assert waits == [["6:20", "–"], ["6:00", "–"], ["5:20", "–"]]
    assert "As it is, alignment 6:40." in told
    again = told.partition("Last week replayed, wait before → after")[2]
    assert "6:40 → <b>5:20</b>" in again
    assert "1,284 workloads: evictions 41 → 44" in again


def test_who_only_reads_a_request_has_nothing_lived_again(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    assert client_of(people.asker).post(url("request_replay", made.pk)).status_code == 404
    assert not Study.objects.exists()


def test_decision_without_reason_gives_the_page_back(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    answer = client_of(people.lead).post(url("request_approve", made.pk), {"note": "", "gpus": "1"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "A decision needs a reason." in text
    assert 'value="1"' in text


def test_late_decision_is_told_what_became_of_it(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    doors.approve(by=people.lead, request=made, note="Yes")
    answer = client_of(people.approver).post(url("request_reject", made.pk), {"note": "No"})
    assert answer.status_code == 409
    assert "has moved on: it is active now by lead" in answer.content.decode()


def test_sum_that_would_not_hold_stands_at_the_giver(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(giver=None, gpus=2))
    answer = client_of(people.lead).post(url("request_approve", made.pk), {"note": "Yes"})
    assert answer.status_code == 400
    assert "its queues would hold 38" in answer.content.decode()


def test_nothing_is_changed_by_get(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    client = client_of(people.lead)
    for verb in ("approve", "reject", "forward", "ask_changes", "revoke", "comment", "submit"):
        assert client.get(url(f"request_{verb}", made.pk)).status_code == 405
    made.refresh_from_db()
    assert made.state == State.APPROVER


def test_researcher_sees_no_button_that_is_not_theirs(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    text = client_of(people.asker).get(url("request", made.pk)).content.decode()
    assert "Withdraw" in text
    assert "Reject" not in text
    assert "You asked for it." in text


def test_renewal_is_one_click(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    doors.approve(by=people.lead, request=made, note="Yes")
    client = client_of(people.asker)
    assert "Renew" in client.get(url("request", made.pk)).content.decode()
    client.post(url("request_renew", made.pk))
    again = QuotaRequest.objects.get(renews=made)
    assert again.starts_at == made.ends_at
    assert f"R-{again.pk}" in client.get(url("request", made.pk)).content.decode()


def test_comment_is_read_by_the_other_side(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    novak = client_of(type(people.asker).objects.get(username="a.novak"))
    novak.post(url("request_comment", made.pk), {"text": "Fine until <January>"})
    text = client_of(people.lead).get(url("request", made.pk)).content.decode()
    assert "Fine until &lt;January&gt;" in text


def test_list_puts_first_what_needs_the_reader(cluster, people, wish):
    doors.submit_new(by=people.asker, wish=wish(gpus=2))
    mine = doors.save_draft(by=people.lead, wish=wish(queue="language"))
    text = client_of(people.lead).get(url("requests")).content.decode()
    assert text.index("Need you") < text.index("Drafts")
    assert f"R-{mine.pk}" in text


def test_list_without_requests_says_what_to_do(cluster, people):
    assert "Ask for quota" in client_of(people.asker).get(url("requests")).content.decode()
    text = client_of(people.approver).get(url("requests")).content.decode()
    assert "No request here" in text


@pytest.mark.parametrize("count", [1, 3])
def test_list_asks_no_more_for_more_rows(
    cluster, people, wish, count, django_assert_max_num_queries
):
    for _ in range(count):
        doors.submit_new(by=people.asker, wish=wish(gpus=2))
    client = client_of(people.lead)
    client.get(url("requests"))
    with django_assert_max_num_queries(24):
        client.get(url("requests"))


def test_rule_is_set_and_taken_away_on_its_page(cluster, people):
    client = client_of(people.lead)
    client.post(url("request_rules"), {"queue": "language", "below_gpus": "4", "most_days": "30"})
    rule = ApprovalRule.objects.get()
    assert (rule.below_gpus, rule.most_days, rule.from_siblings) == (4000, 30, False)
    assert "below 4 GPUs at once" in client.get(url("request_rules")).content.decode()
    answer = client.post(url("request_rules"), {"queue": "language", "below_gpus": "-1"})
    assert answer.status_code == 400
    client.post(url("request_rules"), {"queue": "language", "below_gpus": ""})
    assert not ApprovalRule.objects.exists()


def test_lead_takes_back_what_another_department_gave_without_reading_its_name(
    cluster, people, wish
):
    made = doors.submit_new(by=people.asker, wish=wish(giver=None))
    doors.approve(by=people.approver, request=made, note="Yes", giver=queue_of(cluster, "ci"))
    lead = client_of(people.lead)
    text = lead.get(url("request", made.pk)).content.decode()
    assert "taken from ci" not in text
    assert lead.post(url("request_revoke", made.pk), {"note": "Over"}).status_code == 302
    assert nominal(cluster, "ci") == 8


def test_outcome_of_a_form_that_nothing_was_typed_into_is_no_fault(cluster, people):
    told = client_of(people.lead).get(url("request_preview"), {**TYPED, "gpus": ""})
    assert "Fill in what you ask for" in told.content.decode()
    assert "It asks for no GPU" not in told.content.decode()


def test_other_kind_keeps_what_was_typed_and_no_token_in_the_address(cluster, people):
    sent = TYPED | {"turn": "boost", "csrfmiddlewaretoken": "secret"}
    answer = client_of(people.asker).post(url("request_new"), sent)
    address = answer.headers["Location"]
    assert "secret" not in address
    assert "kind=boost" in address
    assert not QuotaRequest.objects.exists()
    page = client_of(people.asker).get(address).content.decode()
    assert 'value="8"' in page
    assert 'formmethod="get"' not in page


def test_page_comes_before_its_plan_and_follows_it(cluster, people, wish, monkeypatch):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    page = client_of(people.lead).get(url("request", made.pk)).content.decode()

    assert "The engine plans it" in page
    assert 'hx-trigger="every 1s" hx-select="#plan"' in page
    assert "Nobody starts" not in page
    assert "Approved now" not in page
    assert "Approve 2 (not planned yet)</button>" in page


def test_button_beside_a_plan_that_is_planned_anew_says_so(cluster, people, wish, monkeypatch):
    made = doors.submit_new(by=people.asker, wish=wish())
    client = client_of(people.approver)
    assert "planned anew" not in client.get(url("request", made.pk)).content.decode()
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    before = timezone.now() - timedelta(minutes=5)
    PlanQuestion.objects.update(asked_at=before, planned_at=before)
    Cluster.objects.update(revision=F("revision") + 1)
    page = client.get(url("request", made.pk)).content.decode()
    assert "Approve 8, evict 1 (being planned anew)</button>" in page


def test_form_comes_before_what_it_would_do_and_says_who_agrees(cluster, people, monkeypatch):
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    page = client_of(people.asker).get(url("request_preview"), TYPED).content.decode()

    assert "The engine plans it" in page
    assert "Approval by" in page
    assert 'hx-select="#outcome"' in page


def test_plan_that_no_worker_takes_is_said_to_wait(cluster, people, wish, monkeypatch):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    client = client_of(people.lead)
    client.get(url("request", made.pk))
    PlanQuestion.objects.update(asked_at=timezone.now() - timedelta(seconds=15))

    assert "No worker has taken it" in client.get(url("request", made.pk)).content.decode()


def test_request_that_needs_the_reader_stands_on_the_first_page_however_old(cluster, people):
    now = cluster.now()
    common = {
        "cluster": cluster,
        "queue": queue_of(cluster, "alignment"),
        "kind": "access",
        "created_at": now,
    }
    QuotaRequest.objects.create(
        author=people.asker, state=State.SUBMITTED, since=now - timedelta(days=9), **common
    )
    QuotaRequest.objects.bulk_create(
        QuotaRequest(author=people.lead, state=State.ACTIVE, since=now, **common) for _ in range(60)
    )
    first, second = (
        client_of(people.lead).get(url("requests"), {"page": page}).content.decode()
        for page in (1, 2)
    )
    assert first.index("Need you") < first.index("Scheduled and in force")
    assert "1–50 of 61" in first
    assert "51–61 of 61" in second


def sample(queue, resolution: Resolution, gpus: float, hours: int, ago: timedelta) -> None:
    UsageSample.objects.create(
        queue=queue, gpu_class=queue.cluster.gpu_classes.get(name="h100-80gb"), resolution=resolution,
        start=queue.cluster.now() - ago, seconds=hours * 3600, allocated_gpus=int(gpus * MILLI),
    )  # fmt: skip


def test_held_of_days_that_nobody_rolled_up_is_known_by_the_hour(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    vision = queue_of(cluster, "vision")
    for hours in range(24, 48):
        sample(vision, Resolution.HOUR, 12, 1, timedelta(hours=hours))
    sample(vision, Resolution.DAY, 0, 6, timedelta(hours=6))

    text = client_of(people.lead).get(url("request", made.pk)).content.decode()

    assert "held 12 of nominal 16" in text


def test_held_of_days_without_a_sample_is_not_known(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))

    text = client_of(people.lead).get(url("request", made.pk)).content.decode()

    assert "held not known" in text
    assert "held 0" not in text
