"""The rule of promotion, the switch, the demotion by itself, and what a person may do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.models import Announcement, LearnedOrder, LearnedState, State, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.learned import deciding, drifting, states, verdicts, windows
from scheduling.services.policy import rows as policies
from scheduling.services.snapshot import build as snapshots
from tests.factories import NOW, example_cluster
from tests.foresight import live_of
from tests.lab import with_work
from tests.learned import WEIGHTS, an_order, begun, by_weights, made_up, verdict, worked

pytestmark = pytest.mark.django_db
S = LearnedState
LONG_AGO = NOW - timedelta(days=15)


@pytest.fixture
def cluster():
    return example_cluster()


def settled(order, told):
    """What becomes of it by that verdict."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "judge", lambda one: told)
        deciding.settle(order)
    order.refresh_from_db()
    return order.state


def shadow(cluster, said="better", *, broken="", on=True, since=LONG_AGO):
    """In shadow long enough, its days there judged; what becomes of it."""
    cluster.learned_may_decide = on
    cluster.save(update_fields=["learned_may_decide"])
    kinds = ("later", "later", "shadow")
    windows = [{"kind": "shadow", "key": "shadow", "end": NOW.isoformat()}]
    order = an_order(cluster, S.SHADOW, since=since, windows=windows)
    return order, settled(order, verdict(said, broken=broken, kinds=kinds))


@pytest.mark.parametrize(
    ("said", "broken", "becomes", "why"),
    [
        ("better", "", S.SHADOW, "Better than the order that decides on 2 of 2"),
        ("noise", "", S.REJECTED, "no better than the order that decides"),
        ("worse", "", S.REJECTED, "worse than the order that decides on 2 of 2"),
        ("better", "unfair_pct", S.REJECTED, "Fairness is not kept: unfair jobs"),
    ],
)
def test_only_who_is_better_and_fair_goes_into_shadow(cluster, said, broken, becomes, why):
    order = an_order(cluster, S.JUDGED)
    assert settled(order, verdict(said, broken=broken)) == becomes
    assert why in order.why
    assert order.steps.last().state == becomes


@pytest.mark.parametrize(
    ("said", "broken", "on", "becomes"),
    [
        ("better", "", True, S.DECIDING),
        ("better", "", False, S.SHADOW),
        ("noise", "", True, S.SHADOW),
        ("worse", "", True, S.REJECTED),
        ("better", "lost_gpu_hours_pct", True, S.REJECTED),
    ],
)
def test_promoted_is_who_beats_all_with_fairness_kept_and_the_switch_on(
    cluster, said, broken, on, becomes
):
    assert shadow(cluster, said, broken=broken, on=on)[1] == becomes


def test_nobody_is_promoted_before_the_days_in_shadow_are_judged(cluster):
    cluster.learned_may_decide = True
    cluster.save(update_fields=["learned_may_decide"])
    order = an_order(cluster, S.SHADOW, since=LONG_AGO)
    assert settled(order, verdict()) == S.SHADOW


@pytest.mark.parametrize(("said", "becomes"), [("noise", S.REJECTED), ("better", S.SHADOW)])
def test_after_a_month_in_shadow_who_lacks_more_than_the_switch_is_rejected(cluster, said, becomes):
    assert shadow(cluster, said, on=False, since=NOW - timedelta(days=29))[1] == becomes


def test_promotion_puts_weights_into_the_next_policy_and_is_announced(cluster):
    assert policies.load(cluster, at=NOW).order_weights == {}
    order, _ = shadow(cluster)
    rows = policies.load(cluster, at=NOW)
    assert policies.engine_policy(rows).order_weights == WEIGHTS
    told = Announcement.objects.get(kind="learned.deciding")
    assert told.after["weights"] == WEIGHTS
    assert "Better than every other order on all 3 windows" in told.reason
    assert order.since == cluster.now() or order.state == S.DECIDING


def test_who_is_promoted_takes_the_place_of_who_decided(cluster):
    former = an_order(cluster, S.DECIDING, version=9)
    shadow(cluster)
    former.refresh_from_db()
    assert former.state == S.WITHDRAWN
    assert "took its place" in former.why


def test_switch_off_leaves_the_next_cycle_to_the_hand_written_order(cluster):
    order, _ = shadow(cluster)
    assert states.set_switch(cluster=cluster, is_on=False, author="admin")
    order.refresh_from_db()
    assert order.state == S.SHADOW
    assert policies.load(cluster, at=NOW).order_weights == {}
    assert not states.set_switch(cluster=cluster, is_on=False, author="admin")
    assert Announcement.objects.filter(kind="learned.switched").count() == 1


def test_switch_off_withdraws_who_decides_where_another_is_in_shadow(cluster):
    states.set_switch(cluster=cluster, is_on=True, author="admin")
    deciding_one = an_order(cluster, S.DECIDING, version=1)
    an_order(cluster, S.SHADOW, version=2)
    states.set_switch(cluster=cluster, is_on=False, author="admin")
    deciding_one.refresh_from_db()
    assert deciding_one.state == S.WITHDRAWN


@pytest.mark.parametrize("state", states.ALIVE)
def test_a_person_withdraws_whatever_is_not_over_and_says_why(cluster, state):
    order = an_order(cluster, state)
    with pytest.raises(ServiceError) as caught:
        states.withdraw(order=order, author="admin", reason=" ")
    assert caught.value.field == "reason"
    assert states.withdraw(order=order, author="admin", reason="not wanted")
    assert (order.state, order.why) == (S.WITHDRAWN, "not wanted")
    assert not states.withdraw(order=order, author="admin", reason="again")


def test_step_that_there_is_not_is_refused(cluster):
    with pytest.raises(ServiceError):
        states.move(an_order(cluster, S.TRAINING), S.DECIDING, "now")


def test_of_two_who_move_one_is_first(cluster):
    order = an_order(cluster, S.SHADOW)
    other = LearnedOrder.objects.get(pk=order.pk)
    assert states.move(order, S.WITHDRAWN, "first")
    assert not states.move(other, S.REJECTED, "second")
    assert order.steps.count() == 2


@pytest.mark.parametrize(
    ("said", "broken", "why"),
    [
        (
            "worse",
            "",
            "Replayed over its last days, work waited 8.0 ± 2.0 min longer than under Promise.",
        ),
        ("better", "unfair_pct", "fairness was not kept: unfair jobs"),
        ("noise", "", ""),
        ("better", "", ""),
    ],
)
def test_who_decides_demotes_itself_when_its_last_days_speak_against_it(cluster, said, broken, why):
    order = an_order(cluster, S.DECIDING, since=NOW)
    told = verdict(said, broken=broken, kinds=("drift",))
    told["windows"][0:0] = verdict(kinds=("later",))["windows"]
    becomes = settled(order, told)
    assert becomes == (S.DEMOTED if why else S.DECIDING)
    assert why in order.why


def test_unfair_work_that_really_came_demotes_it(cluster, monkeypatch):
    order = an_order(cluster, S.DECIDING, since=NOW - timedelta(days=2))
    monkeypatch.setattr(drifting, "unfair", lambda *args: (200, 2.3))
    assert settled(order, verdict()) == S.DEMOTED
    assert "2.3 % ended later than on their queue's own quota" in order.why


def test_evictions_that_really_came_demote_it(cluster, monkeypatch):
    order = an_order(cluster, S.DECIDING, since=NOW - timedelta(days=2))
    monkeypatch.setattr(drifting, "evictions", lambda *args: (200, 0.2))
    assert settled(order, verdict()) == S.DEMOTED
    assert "0.200 evictions per workload" in order.why


def test_unfair_is_counted_of_what_ended_late_on_its_own_quota(cluster):
    row = Workload.objects.filter(cluster=cluster).first()
    since = NOW - timedelta(days=1)
    Workload.objects.filter(pk=row.pk).update(
        state=State.FINISHED, started_at=since, first_started_at=since, finished_at=NOW - timedelta(hours=1),
        virtual_start_at=row.submitted_at,
    )  # fmt: skip
    assert drifting.unfair(cluster, since, NOW)[0] == 1


def test_from_training_to_a_demotion_in_one_life(cluster, monkeypatch):
    """Trained, in shadow, promoted two weeks later, and demoted once it is worse."""
    with_work(cluster)
    made_up(monkeypatch, by_weights(1800))
    states.set_switch(cluster=cluster, is_on=True, author="admin")
    order = worked(begun(cluster, monkeypatch))
    assert order.state == S.SHADOW
    later = cluster.now() + timedelta(days=14, hours=1)
    monkeypatch.setattr(type(cluster), "now", lambda self: later)
    monkeypatch.setattr(snapshots, "live", live_of)
    _shifted(cluster, timedelta(days=14))
    assert worked(order).state == S.DECIDING
    much_later = later + timedelta(days=1, hours=1)
    monkeypatch.setattr(type(cluster), "now", lambda self: much_later)
    _shifted(cluster, timedelta(days=1))
    made_up(monkeypatch, by_weights(7200))
    monkeypatch.setattr(windows, "LEAST_WORKLOADS", 10)
    found = worked(order)
    assert (found.state, "longer than under" in found.why) == (S.DEMOTED, True)


def _shifted(cluster, by):
    """The same work once more, so much later."""
    for row in Workload.objects.filter(cluster=cluster, uid__startswith="past-"):
        for name in ("submitted_at", "first_started_at", "started_at", "finished_at"):
            setattr(row, name, getattr(row, name) + by)
        row.save()
