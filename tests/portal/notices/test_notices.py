"""Who is told what, when, and once."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.approvals import clock, doors
from portal.notices import inbox, outbox, times
from portal.notices.models import Cursor, Hours, Kind, Notice
from scheduling.models import MILLI, Delivery, Eviction, Transition, Workload
from scheduling.services import events
from tests.factories import NOW, make_workload
from tests.portal.approvals.conftest import queue_of, set_clock
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


def told(name: str) -> list[tuple[str, str]]:
    events.deliver_due()
    rows = Notice.objects.filter(user__username=name).order_by("pk")
    return [(row.kind, row.title) for row in rows]


def test_each_step_is_told_to_whom_it_concerns(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    assert [kind for kind, _ in told("lead")] == ["needs_me"]
    doors.forward(by=people.lead, request=made)
    assert "lead forwarded it, and it is your turn" in told("approver")[-1][1]
    doors.approve(by=people.approver, request=made, note="Yes")
    assert told("s.marchetti")[-1] == (
        "decided", f"R-{made.pk}, alignment +8 h100-80gb, was approved by approver."
    )  # fmt: skip
    assert told("lead")[-1][0] == "decided"
    assert told("p.rossi") == []


def test_what_failed_needs_its_owner_before_what_is_only_new(people):
    cluster = people.asker.memberships.first().team.queue.cluster
    for kind in (Kind.FAILED, Kind.STARTED, Kind.DECIDED):
        Notice.objects.create(
            user=people.asker, cluster=cluster, kind=kind, about=str(kind), source=str(kind),
            title=f"It {kind}.", at=NOW, due_at=timezone.now(),
        )  # fmt: skip
    assert inbox.counts(people.asker) == {"total": 3, "new": 3, "needs": 1}
    assert inbox.in_order(inbox.visible(people.asker))[0].kind == Kind.FAILED
    client = Client()
    client.force_login(people.asker)
    assert "3 are new, 1 needs you.</b> It failed." in client.get("/notices/").content.decode()
    only = client.get("/notices/?show=needs").content.decode()
    assert ("It failed." in only, "It started." in only) == (True, False)


def test_turn_that_somebody_else_took_is_no_news_any_more(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    told("lead")
    assert inbox.unread(people.approver) == 1
    doors.reject(by=people.lead, request=made, note="No")
    told("lead")
    assert inbox.unread(people.approver) == 0


def test_turn_of_what_its_author_wants_no_more_is_over(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    told("lead")
    assert inbox.unread(people.lead) == 1
    doors.withdraw(by=people.asker, request=made)
    told("lead")
    assert inbox.unread(people.lead) == 0


def test_nobody_is_told_of_what_they_did(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    doors.comment(by=people.asker, request=made, text="Please")
    assert told("s.marchetti") == []


def test_author_is_told_who_commented(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    doors.comment(by=people.lead, request=made, text="How long?")
    ((_, title),) = told("s.marchetti")
    assert title.endswith(f", has a comment by {people.lead}.")


def test_end_is_told_before_it_comes_with_the_digest(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    doors.approve(by=people.lead, request=made, note="Yes")
    set_clock(cluster, NOW + timedelta(days=26))
    clock.advance_all()
    assert told("s.marchetti")[-1][0] == "ends"
    last = Notice.objects.get(kind=Kind.ENDS, user=people.asker)
    assert last.due_at > timezone.now()
    assert last not in inbox.visible(people.asker)


def test_event_that_is_delivered_again_is_told_once(cluster, people, wish):
    doors.submit_new(by=people.asker, wish=wish())
    delivery = Delivery.objects.filter(subscriber="portal.notices.outbox.hear").get()
    for _ in range(2):
        with transaction.atomic():
            outbox.hear(delivery.announcement)
    events.deliver_due()
    assert len(told("lead")) == 1


def evict(cluster, *, user: str, for_queue: str = "alignment") -> Eviction:
    pretraining = queue_of(cluster, "pretraining")
    work = make_workload(pretraining, name="pt-mix", user=user)
    return Eviction.objects.create(
        workload=work,
        at=NOW,
        rule="reclaim",
        queue=pretraining,
        for_queue=queue_of(cluster, for_queue),
        for_workload=make_workload(queue_of(cluster, for_queue), name="align-rm"),
        gpu_class=cluster.gpu_classes.get(name=H100),
        gpus=8 * MILLI,
        lost_gpu_s=7.5 * 3600,
        sentence="pretraining held 56, 12 above its fair share of 44.",
        sealed={},
    )


def test_eviction_says_by_whom_why_what_is_lost_and_what_comes_next(cluster, people):
    outbox.look(cluster)
    evict(cluster, user="researcher")
    assert outbox.look(cluster) == 1
    one = Notice.objects.get(user__username="researcher")
    assert one.title == "pt-mix was evicted for align-rm."
    assert dict(one.lines) == {
        "Why": "pretraining held 56, 12 above its fair share of 44.",
        "Lost": "7.5 GPU-hours since its last checkpoint.",
        "Next": "It waits again, first in line of its priority.",
    }


def test_eviction_for_another_teams_work_does_not_name_it(cluster, people):
    outbox.look(cluster)
    evict(cluster, user="w.zhao", for_queue="search")
    outbox.look(cluster)
    one = Notice.objects.get(user__username="w.zhao")
    assert "align-rm" not in one.title


def test_ledger_is_told_once_and_nothing_of_before_the_first_look(cluster, people):
    evict(cluster, user="researcher")
    outbox.look(cluster)
    assert not Notice.objects.exists()
    evict(cluster, user="researcher")
    assert (outbox.look(cluster), outbox.look(cluster)) == (1, 0)
    Cursor.objects.update(eviction=0)
    outbox.look(cluster)
    assert Notice.objects.filter(user__username="researcher").count() == 2


def test_look_that_is_killed_tells_all_the_next_time(cluster, people, monkeypatch):
    outbox.look(cluster)
    evict(cluster, user="researcher")
    real = outbox.tell

    def killed(*args, **more):
        real(*args, **more)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(outbox, "tell", killed)
        with pytest.raises(SystemExit):
            outbox.look(cluster)
    assert not Notice.objects.exists()
    assert outbox.look(cluster) == 1
    assert Notice.objects.count() == 1


@pytest.mark.parametrize(("hours", "count"), [(1, 0), (3, 1)])
def test_start_is_told_after_a_long_wait_alone(cluster, people, hours, count):
    outbox.look(cluster)
    work = make_workload(queue_of(cluster, "alignment"), user="s.marchetti", submitted_at=NOW)
    at = NOW + timedelta(hours=hours)
    Transition.objects.create(workload=work, at=at, to_state="running")
    outbox.look(cluster)
    assert Notice.objects.filter(user=people.asker, kind=Kind.STARTED).count() == count


ENDS = [
    ("succeeded", "", Kind.FINISHED, "eval-7b has finished after 2 h.", {"Held": "16 GPU-hours"}),
    ("failed", "exit_code", Kind.FAILED, "eval-7b failed after 2 h.", {
        "Why": "A container of it ended with an error (exit code 3).",
        "Next": "Read its log while the cluster has its pods, mend what it names, then clone it.",
        "Held": "16 GPU-hours",
    }),
    ("cancelled", "cancelled", None, "", {}),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "cause", "kind", "title", "lines"), ENDS)
def test_end_is_told_with_why_and_what_to_do(cluster, people, outcome, cause, kind, title, lines):
    outbox.look(cluster)
    work = make_workload(
        queue_of(cluster, "alignment"), name="eval-7b", user="s.marchetti", state="finished",
        outcome=outcome, cause=cause, exit_code=3 if cause == "exit_code" else None,
        started_at=NOW - timedelta(hours=2), finished_at=NOW, used_gpu_s=16 * 3600,
    )  # fmt: skip
    Transition.objects.create(workload=work, at=NOW, to_state="finished")
    outbox.look(cluster)
    told = [(n.kind, n.title, dict(n.lines)) for n in Notice.objects.filter(user=people.asker)]
    assert told == ([(kind, title, lines)] if kind else [])


@pytest.mark.parametrize(("reason", "count"), [("run_time_over", 1), ("", 0)])
def test_stop_at_its_limit_is_told_and_other_waits_are_not(cluster, people, reason, count):
    outbox.look(cluster)
    work = make_workload(queue_of(cluster, "alignment"), user="s.marchetti")
    Transition.objects.create(workload=work, at=NOW, to_state="requeued", reason=reason)
    outbox.look(cluster)
    assert Notice.objects.filter(user=people.asker, kind=Kind.FAILED).count() == count


def test_change_of_size_is_no_start(cluster, people):
    outbox.look(cluster)
    work = make_workload(queue_of(cluster, "alignment"), user="s.marchetti", submitted_at=NOW)
    later = NOW + timedelta(hours=9)
    Transition.objects.create(workload=work, at=later, from_state="running", to_state="running")
    assert outbox.look(cluster) == 0


def at(hour: int) -> datetime:
    return datetime(2026, 11, 19, hour, 30, tzinfo=UTC)


def test_quiet_hours_put_off_what_is_no_eviction(cluster, people):
    Hours.objects.create(user=people.asker, quiet_from=20, quiet_until=7)
    due = times.due_at(people.asker, Kind.DECIDED, at(22), "UTC")
    assert due == datetime(2026, 11, 20, 7, tzinfo=UTC)
    assert times.due_at(people.asker, Kind.EVICTED, at(22), "UTC") == at(22)
    assert times.due_at(people.asker, Kind.DECIDED, at(12), "UTC") == at(12)


def test_kind_that_is_off_is_not_told(cluster, people, wish):
    inbox.set_preferences(
        people.lead,
        preferences={"needs_me": "off"},
        digest_hour=8,
        quiet_from=None,
        quiet_until=None,
    )
    doors.submit_new(by=people.asker, wish=wish())
    assert told("lead") == []


def page(user) -> str:
    client = Client()
    client.force_login(user)
    return client.get(reverse("web:notices")).content.decode()


def test_bell_counts_what_is_new_until_it_is_read(cluster, people, wish):
    doors.submit_new(by=people.asker, wish=wish())
    events.deliver_due()
    assert 'class="bell-count">1' in page(people.lead)
    client = Client()
    client.force_login(people.lead)
    client.post(reverse("web:notices_read"))
    assert "bell-count" not in page(people.lead)
    assert "it is your turn" in page(people.lead)


def test_notice_that_needs_the_reader_stands_on_the_first_page_however_old(cluster, people):
    def notice(i: int, **fields) -> Notice:
        at = timezone.now() - timedelta(minutes=i)
        named = {"at": at, "due_at": at, "source": f"test {i}", "about": f"thing {i}", "title": "t"}
        return Notice(user=people.lead, cluster=cluster, **named | {"kind": Kind.STARTED} | fields)

    Notice.objects.bulk_create(map(notice, range(60)))
    notice(99, kind=Kind.NEEDS_ME).save()
    first = page(people.lead)
    assert first.index("thing 99<") < first.index("thing 0<")
    assert "1–50 of 61" in first


def test_one_thing_is_marked_read_and_the_rest_stays_new(cluster, people, wish):
    for _ in range(2):
        doors.submit_new(by=people.asker, wish=wish())
    events.deliver_due()
    first = Notice.objects.filter(user=people.lead).first()
    assert inbox.mark_read(people.lead, about=first.about) == 1
    assert inbox.unread(people.lead) == 1
    assert inbox.mark_read(User.objects.get(username="admin"), pks=[first.pk]) == 0


def test_preferences_are_saved_from_the_page(cluster, people):
    client = Client()
    client.force_login(people.lead)
    sent = {"needs_me": "digest", "digest_hour": "9", "quiet_from": "20", "quiet_until": "7"}
    client.post(reverse("web:notice_preferences"), sent)
    assert times.preferences_of(people.lead)[Kind.NEEDS_ME] == "digest"
    hours = times.hours_of(people.lead)
    assert (hours.digest_hour, hours.quiet_from, hours.quiet_until) == (9, 20, 7)
    client.post(reverse("web:notice_preferences"), sent | {"quiet_until": ""})
    assert times.hours_of(people.lead).quiet_until == 7


def test_work_of_nobody_known_is_told_to_nobody(cluster, people):
    outbox.look(cluster)
    evict(cluster, user="somebody")
    assert outbox.look(cluster) == 1
    assert not Notice.objects.exists()
    assert Workload.objects.filter(user="somebody").exists()
