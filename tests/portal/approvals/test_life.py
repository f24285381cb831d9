"""A request from draft to its end, and what each step leaves."""

from datetime import timedelta
from decimal import Decimal

import pytest

from portal.approvals import clock, doors
from portal.approvals.models import QuotaRequest
from portal.approvals.states import State
from portal.audit.models import AuditEntry
from scheduling.models import MILLI, Queue, QuotaChange, Stop
from scheduling.services.errors import ServiceError
from scheduling.services.events import deliver_due
from scheduling.services.queues.save import Field, QuotaCell, save_quotas
from tests.factories import NOW
from tests.portal.approvals.conftest import nominal, queue_of, set_clock
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


def granted(people, wish, **more) -> QuotaRequest:
    made = doors.submit_new(by=people.asker, wish=wish(**more))
    if made.state == State.SUBMITTED:
        doors.forward(by=people.lead, request=made)
    return doors.approve(by=people.approver, request=made, note="Release.")


def test_draft_becomes_active_by_lead_and_approver(cluster, people, wish):
    made = doors.save_draft(by=people.asker, wish=wish())
    assert made.state == State.DRAFT
    assert doors.submit(by=people.asker, request=made).state == State.SUBMITTED
    assert doors.forward(by=people.lead, request=made, note="Fine").state == State.APPROVER
    done = doors.approve(by=people.approver, request=made, note="Release")
    assert done.state == State.ACTIVE
    assert [step.verb for step in made.steps.all()] == ["save", "submit", "forward", "approve"]


def test_approval_hands_quota_over_and_keeps_every_sum(cluster, people, wish):
    granted(people, wish)
    assert nominal(cluster, "alignment") == 20
    assert nominal(cluster, "language") == 44
    assert nominal(cluster, "vision") == 8
    assert nominal(cluster, "research") == 64
    later = NOW + timedelta(days=28)
    assert [nominal(cluster, n, later) for n in ("alignment", "language", "vision")] == [12, 36, 16]


def test_amount_comes_on_top_of_what_others_scheduled(cluster, people, wish):
    save_quotas(
        queue=queue_of(cluster, "research"),
        cells=[QuotaCell("vision", H100, Field.NOMINAL, Decimal(14))],
        author=people.lead,
        reason="Less from next week",
        effective_from=NOW + timedelta(days=7),
    )
    made = granted(people, wish)
    assert nominal(cluster, "vision", NOW + timedelta(days=3)) == 8
    assert nominal(cluster, "vision", NOW + timedelta(days=9)) == 6
    assert nominal(cluster, "vision", NOW + timedelta(days=30)) == 14
    assert made.changes.count() == 2


def test_two_boosts_that_overlap_add_up_and_end_apart(cluster, people, wish):
    first = granted(people, wish, gpus=4)
    granted(people, wish, gpus=2, ends_at=NOW + timedelta(days=10))
    assert nominal(cluster, "alignment") == 18
    doors.revoke(by=people.approver, request=first, note="No longer")
    assert nominal(cluster, "alignment") == 14
    assert nominal(cluster, "alignment", NOW + timedelta(days=11)) == 12
    assert nominal(cluster, "vision", NOW + timedelta(days=11)) == 16


def test_every_step_is_in_the_audit_log(cluster, people, wish):
    made = granted(people, wish)
    doors.comment(by=people.asker, request=made, text="Thanks")
    doors.revoke(by=people.approver, request=made, note="Over")
    deliver_due()
    kinds = set(
        AuditEntry.objects.filter(kind__startswith="request.").values_list("kind", flat=True)
    )
    assert kinds == {f"request.{v}" for v in ("submit", "forward", "approve", "comment", "revoke")}
    assert AuditEntry.objects.get(kind="request.approve").actor == "approver"


def test_approver_may_cut_amount_and_end(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    doors.forward(by=people.lead, request=made)
    end = NOW + timedelta(days=5)
    doors.approve(by=people.approver, request=made, note="Half", gpus=4 * MILLI, ends_at=end)
    assert nominal(cluster, "alignment") == 16
    assert nominal(cluster, "alignment", end) == 12
    assert (made.gpus, made.granted_gpus) == (8 * MILLI, 4 * MILLI)


def test_more_than_asked_is_not_granted(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="More", gpus=3 * MILLI)
    assert caught.value.field == "gpus"


def test_lead_names_the_giver_that_its_author_does_not_see(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(giver=None))
    doors.forward(by=people.lead, request=made, giver=queue_of(cluster, "vision"))
    made.refresh_from_db()
    assert made.giver.name == "vision"
    doors.approve(by=people.approver, request=made, note="Yes")
    assert nominal(cluster, "vision") == 8


def test_without_a_giver_sums_are_kept_and_nothing_half_done(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(giver=None))
    doors.forward(by=people.lead, request=made)
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.approver, request=made, note="Yes")
    assert "would hold" in caught.value.sentence
    made.refresh_from_db()
    assert made.state == State.APPROVER
    assert not QuotaChange.objects.exists()


def test_small_amount_is_approved_by_the_lead_alone(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=3))
    assert made.state == State.APPROVER
    assert doors.approve(by=people.lead, request=made, note="Small").state == State.ACTIVE


def test_changes_asked_for_go_back_to_the_author_and_round_again(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    doors.ask_changes(by=people.lead, request=made, note="Half would do")
    assert made.state == State.CHANGES
    doors.save_draft(by=people.asker, request=made, wish=wish(gpus=4))
    assert doors.submit(by=people.asker, request=made).state == State.SUBMITTED
    made.refresh_from_db()
    assert made.gpus == 4 * MILLI


def test_scheduled_begins_and_ends_by_the_clock(cluster, people, wish):
    start, end = NOW + timedelta(days=2), NOW + timedelta(days=20)
    made = granted(people, wish, starts_at=start, ends_at=end)
    assert made.state == State.SCHEDULED
    assert (nominal(cluster, "alignment"), nominal(cluster, "alignment", start)) == (12, 20)
    states = []
    for at in (start, end - timedelta(days=3), end):
        set_clock(cluster, at)
        clock.advance_all()
        made.refresh_from_db()
        states.append(made.state)
    assert states == [State.ACTIVE, State.EXPIRING, State.EXPIRED]
    assert clock.advance_all() == 0


def test_worker_that_was_away_takes_all_steps_in_order(cluster, people, wish):
    start, end = NOW + timedelta(days=2), NOW + timedelta(days=20)
    made = granted(people, wish, starts_at=start, ends_at=end)
    set_clock(cluster, end + timedelta(days=1))
    clock.advance_all()
    made.refresh_from_db()
    assert made.state == State.EXPIRED
    assert [s.verb for s in made.steps.all()][-2:] == ["begin", "expire"]


def test_short_boost_is_said_to_expire_when_a_quarter_is_left(cluster, people, wish):
    made = granted(people, wish, ends_at=NOW + timedelta(hours=8))
    clock.advance_all()
    made.refresh_from_db()
    assert made.state == State.ACTIVE
    set_clock(cluster, NOW + timedelta(hours=6, minutes=1))
    clock.advance_all()
    made.refresh_from_db()
    assert made.state == State.EXPIRING


def test_renewal_goes_on_where_the_boost_ends(cluster, people, wish):
    end = NOW + timedelta(days=28)
    made = granted(people, wish)
    again = doors.renew(by=people.asker, request=made)
    assert (again.starts_at, again.ends_at) == (end, end + timedelta(days=28))
    doors.forward(by=people.lead, request=again)
    doors.approve(by=people.approver, request=again, note="Goes on")
    assert nominal(cluster, "alignment", end + timedelta(days=1)) == 20
    set_clock(cluster, end)
    clock.advance_all()
    made.refresh_from_db()
    again.refresh_from_db()
    assert (made.state, again.state) == (State.RENEWED, State.ACTIVE)


def test_renewal_is_asked_for_once_at_a_time(cluster, people, wish):
    made = granted(people, wish)
    doors.renew(by=people.asker, request=made)
    with pytest.raises(ServiceError) as caught:
        doors.renew(by=people.asker, request=made)
    assert caught.value.code == "renewed"


def test_revocation_leaves_what_was_edited_since(cluster, people, wish):
    made = granted(people, wish)
    save_quotas(
        queue=queue_of(cluster, "language"),
        cells=[QuotaCell("alignment", H100, Field.NOMINAL, Decimal(15))],
        author=people.lead,
        reason="By hand",
        effective_until=made.ends_at,
    )
    doors.revoke(by=people.approver, request=made, note="Over")
    assert made.state == State.REVOKED
    assert nominal(cluster, "alignment") == 15
    assert "edited by lead since" in made.outcome


def test_revocation_of_what_has_not_begun_leaves_no_trace_ahead(cluster, people, wish):
    start = NOW + timedelta(days=2)
    made = granted(people, wish, starts_at=start)
    doors.revoke(by=people.approver, request=made, note="Over")
    assert nominal(cluster, "alignment", start + timedelta(days=1)) == 12


def new_queue(people, wish, **more) -> QuotaRequest:
    asked = wish(kind="queue", queue="research", giver=None, gpus=None, name="evals", **more)
    made = doors.submit_new(by=people.lead, wish=asked)
    return doors.approve(by=people.approver, request=made, note="Yes")


def test_queue_is_made_when_its_request_begins(cluster, people, wish):
    made = new_queue(people, wish)
    assert made.state == State.ACTIVE
    queue = Queue.objects.get(name="evals")
    assert (queue.path, queue.namespace, made.made_queue) == ("research/evals", "weir-evals", queue)


def test_queue_whose_name_is_taken_meanwhile_goes_back_to_its_author(cluster, people, wish):
    made = new_queue(people, wish, starts_at=NOW + timedelta(days=1))
    assert made.state == State.SCHEDULED
    Queue.objects.create(cluster=cluster, parent=queue_of(cluster, "products"), name="evals")
    set_clock(cluster, NOW + timedelta(days=1))
    clock.advance_all()
    made.refresh_from_db()
    assert made.state == State.CHANGES
    assert "evals" in made.decision


def test_revoked_queue_goes_while_it_is_empty_and_holds_once_it_is_not(cluster, people, wish):
    made = new_queue(people, wish)
    doors.revoke(by=people.approver, request=made, note="No")
    assert not Queue.objects.filter(name="evals").exists()
    again = new_queue(people, wish)
    Queue.objects.create(cluster=cluster, parent=again.made_queue, name="below")
    doors.revoke(by=people.approver, request=again, note="No")
    assert Queue.objects.get(name="evals").stop == Stop.HOLD
    assert again.outcome
