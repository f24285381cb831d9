"""Two at once: one of them wins, the other is told, and nothing is done twice or by half."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from portal.approvals import clock, doors, effects, moves
from portal.approvals.models import QuotaRequest
from portal.approvals.states import State, Verb
from scheduling.models import QuotaChange
from scheduling.services.errors import ServiceError
from tests.factories import NOW
from tests.portal.approvals.conftest import nominal, set_clock
from tests.portal.approvals.test_life import granted

pytestmark = pytest.mark.django_db


def copy(request: QuotaRequest) -> QuotaRequest:
    """As another process read it before."""
    return QuotaRequest.objects.select_related("cluster", "queue__cluster", "giver").get(
        pk=request.pk
    )


def test_second_approver_is_told_who_was_first(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    stale = copy(made)
    doors.approve(by=people.lead, request=made, note="Yes")
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.approver, request=stale, note="Yes")
    assert (caught.value.code, "by lead" in caught.value.sentence) == ("moved_on", True)
    assert QuotaChange.objects.count() == 1
    assert nominal(cluster, "alignment") == 14


def test_rejection_after_approval_changes_nothing(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    stale = copy(made)
    doors.approve(by=people.lead, request=made, note="Yes")
    with pytest.raises(ServiceError):
        doors.reject(by=people.approver, request=stale, note="No")
    assert copy(made).state == State.ACTIVE


def test_withdrawal_against_approval_settles_one_way(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    stale = copy(made)
    doors.withdraw(by=people.asker, request=made)
    with pytest.raises(ServiceError):
        doors.approve(by=people.lead, request=stale, note="Yes")
    assert not QuotaChange.objects.exists()


def test_revocation_against_expiry_is_told_that_it_ended(cluster, people, wish):
    made = granted(people, wish)
    stale = copy(made)
    set_clock(cluster, NOW + timedelta(days=28))
    clock.advance_all()
    stale.cluster.refresh_from_db()
    with pytest.raises(ServiceError) as caught:
        doors.revoke(by=people.approver, request=stale, note="Over")
    assert caught.value.code == "moved_on"
    assert copy(made).state == State.EXPIRED


def test_edit_of_what_was_decided_meanwhile_is_refused(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    doors.ask_changes(by=people.lead, request=made, note="Less")
    stale = copy(made)
    doors.save_draft(by=people.asker, request=made, wish=wish(gpus=2))
    doors.submit(by=people.asker, request=made)
    with pytest.raises(ServiceError) as caught:
        doors.save_draft(by=people.asker, request=stale, wish=wish(gpus=6))
    assert caught.value.code == "moved_on"
    assert copy(made).gpus == 2000


def test_step_whose_effect_fails_is_not_taken(cluster, people, wish, monkeypatch):
    """As a kill between the claim and the quotas: neither is there."""
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))

    def killed(*args, **more):
        raise SystemExit

    monkeypatch.setattr(effects, "shift_quotas", killed)
    with pytest.raises(SystemExit), transaction.atomic():
        doors.approve(by=people.lead, request=copy(made), note="Yes")
    assert copy(made).state == State.APPROVER
    assert made.steps.filter(verb=Verb.APPROVE).count() == 0


def test_clock_that_is_killed_at_any_line_goes_on_where_it_was(cluster, people, wish, monkeypatch):
    made = granted(people, wish, starts_at=NOW + timedelta(days=1))
    set_clock(cluster, NOW + timedelta(days=29))
    real, calls = moves.announce, []

    def killed_once(kind, **told):
        calls.append(kind)
        if len(calls) == 1:
            raise RuntimeError
        return real(kind, **told)

    monkeypatch.setattr(moves, "announce", killed_once)
    clock.advance_all()
    clock.advance_all()
    assert copy(made).state == State.EXPIRED
    verbs = [step.verb for step in made.steps.all()]
    assert (verbs.count("begin"), verbs.count("expire")) in {(0, 1), (1, 1)}


def test_failure_of_one_request_holds_up_no_other(cluster, people, wish, monkeypatch):
    first = granted(people, wish, gpus=2, ends_at=NOW + timedelta(days=1))
    second = granted(people, wish, gpus=2, ends_at=NOW + timedelta(days=1))
    set_clock(cluster, NOW + timedelta(days=1))
    real = effects.is_renewed

    def bad(request):
        if request.pk == first.pk:
            raise RuntimeError
        return real(request)

    monkeypatch.setattr(effects, "is_renewed", bad)
    clock.advance_all()
    assert (copy(first).state, copy(second).state) == (State.ACTIVE, State.EXPIRED)


def at_once(*acts) -> list[object]:
    """What each came to, begun together in threads of their own."""
    results: list[object] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def run(number, act):
        gate.wait()
        try:
            results[number] = act()
        except ServiceError as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
def test_two_approvers_at_once_grant_it_once(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    came = at_once(
        lambda: doors.approve(by=people.lead, request=copy(made), note="Yes"),
        lambda: doors.approve(by=people.approver, request=copy(made), note="Yes"),
    )
    assert sorted(type(one).__name__ for one in came) == ["QuotaRequest", "ServiceError"]
    assert nominal(cluster, "alignment") == 14
    assert made.steps.filter(verb=Verb.APPROVE).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_take_each_step_once(cluster, people, wish):
    made = granted(people, wish, starts_at=NOW + timedelta(days=1))
    set_clock(cluster, NOW + timedelta(days=29))
    at_once(clock.advance_all, clock.advance_all)
    clock.advance_all()
    assert [step.verb for step in made.steps.all()][-2:] == ["begin", "expire"]


@pytest.mark.django_db(transaction=True)
def test_small_requests_at_once_stay_below_the_rule_together(cluster, people, wish):
    from portal.approvals.automatic import set_rule
    from tests.portal.approvals.conftest import queue_of

    set_rule(
        by=people.lead, queue=queue_of(cluster, "language"), below_gpus=4000, from_siblings=True
    )
    asked = {"gpus": 3, "giver": "pretraining"}
    came = at_once(*(lambda: doors.submit_new(by=people.asker, wish=wish(**asked)),) * 2)
    assert sorted(one.state for one in came) == [State.ACTIVE, State.APPROVER]
