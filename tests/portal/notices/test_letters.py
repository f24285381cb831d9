"""Mail and webhooks: what is written, sent once, tried again, and dead in the end."""

import hashlib
import hmac
import json
import threading
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection, transaction
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.notices import dead, delivery, inbox, letters, outbox, times, webhooks
from portal.notices.models import Hours, Kind, Letter, Notice, Way, Webhook
from scheduling.models import Cluster
from scheduling.services import events
from scheduling.services.errors import ServiceError
from tests.factories import make_cluster, make_user
from tests.sink import listening

pytestmark = pytest.mark.django_db


@pytest.fixture
def sink(settings):
    settings.WEIR_WEBHOOK_HTTP = True
    with listening() as made:
        settings.WEIR_WEBHOOK_INSIDE = [made.host]
        yield made


@pytest.fixture
def cluster(db) -> Cluster:
    return make_cluster()


@pytest.fixture
def person(settings, cluster) -> User:
    settings.WEIR_MAIL_HOST = "mail.example.org"
    settings.WEIR_ADDRESS = "https://weir.example.org"
    return make_user("m.okafor", email="m.okafor@example.org")


def tell(person, cluster, number=1, kind=Kind.EVICTED, title="pt-mix was evicted.") -> None:
    outbox.tell(
        person, kind, cluster, source=f"eviction {number}", about="pt-mix", title=title,
        lines=[["Why", "It held <56>."]], address="/c/fra1/w/u/",
    )  # fmt: skip


def hook(person, sink, name="team") -> tuple[Webhook, str]:
    return webhooks.add(person, name=name, address=sink.address)


def pass_time(**by) -> None:
    """All that waits comes due, as after a wait."""
    Letter.objects.filter(state="waiting").update(due_at=timezone.now() - timedelta(**by))


# What is written


def test_notice_goes_by_mail_and_to_the_webhook_once_each(person, cluster, sink):
    hook(person, sink)
    tell(person, cluster)
    tell(person, cluster)
    assert (delivery.deliver_due(), delivery.deliver_due()) == (2, 0)
    assert len(mail.outbox) == len(sink.got) == 1
    message = mail.outbox[0]
    assert (message.subject, message.to) == ("pt-mix was evicted.", ["m.okafor@example.org"])
    assert "https://weir.example.org/c/fra1/w/u/" in message.body
    assert "Why: It held <56>." in message.body


def test_way_that_is_off_for_the_kind_gets_nothing(person, cluster, sink):
    hook(person, sink)
    inbox.set_preferences(
        person, preferences={}, ways={"evicted": ["webhook"]}, digest_hour=8, quiet_from=None,
        quiet_until=None,
    )  # fmt: skip
    tell(person, cluster)
    assert list(Letter.objects.values_list("way", flat=True)) == ["webhook"]


def test_ways_as_the_kind_has_them_leave_no_row(person):
    inbox.set_preferences(
        person, preferences={}, ways={"evicted": ["mail", "webhook"]}, digest_hour=8, quiet_from=None,
        quiet_until=None,
    )  # fmt: skip
    assert not person.notice_preferences.exists()
    assert times.ways_of(person)[Kind.EVICTED] == {Way.MAIL, Way.WEBHOOK}


@pytest.mark.parametrize("ways", [{"evicted": ["pigeon"]}, {"none": ["mail"]}])
def test_way_that_is_none_is_refused(person, ways):
    with pytest.raises(ServiceError):
        inbox.set_preferences(
            person, preferences={}, ways=ways, digest_hour=8, quiet_from=None, quiet_until=None
        )


def test_digest_is_one_letter_of_many_notices(person, cluster):
    for number in range(3):
        tell(person, cluster, number, Kind.ENDS, f"R-{number} ends.")
    assert delivery.deliver_due() == 0
    pass_time(seconds=1)
    assert delivery.deliver_due() == 1
    assert mail.outbox[0].subject == "Weir: 3 notices"
    assert mail.outbox[0].body.count("ends.") == 3


def test_quiet_hours_hold_letters_back_too(person, cluster, monkeypatch):
    now = timezone.now()
    Hours.objects.create(user=person, quiet_from=now.hour, quiet_until=(now.hour + 2) % 24)
    tell(person, cluster, kind=Kind.DECIDED)
    assert Letter.objects.get().due_at > now
    assert delivery.deliver_due() == 0


@pytest.mark.parametrize("lacking", ["server", "address"])
def test_nobody_writes_mail_that_could_not_go(person, cluster, settings, lacking):
    if lacking == "server":
        settings.WEIR_MAIL_HOST = ""
    else:
        person.email = ""
    tell(person, cluster)
    assert Notice.objects.exists()
    assert not Letter.objects.exists()


def test_letter_falls_with_the_notice_that_is_undone(person, cluster, monkeypatch):
    def killed(*_):
        raise SystemExit

    monkeypatch.setattr(letters, "write", killed)
    with pytest.raises(SystemExit), transaction.atomic():
        tell(person, cluster)
    assert not Notice.objects.exists()


def test_names_break_no_line_of_a_mails_head(person, cluster):
    tell(person, cluster, title="a\r\nBcc: x@example.org was evicted.")
    assert delivery.deliver_due() == 1
    assert mail.outbox[0].subject == "a Bcc: x@example.org was evicted."


def test_who_left_is_told_no_more(person, cluster):
    tell(person, cluster)
    User.objects.update(is_active=False)
    delivery.deliver_due()
    assert Letter.objects.get().state == "dropped"
    assert mail.outbox == []


# Webhooks


def test_webhook_is_signed_with_its_own_secret_over_time_and_body(person, cluster, sink):
    _, secret = hook(person, sink)
    tell(person, cluster)
    delivery.deliver_due()
    _, headers, body = sink.got[0]
    signed = headers["Weir-Timestamp"].encode() + b"." + body
    right = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["Weir-Signature"] == f"v1={right}"
    assert headers["Content-Type"] == "application/json"


def test_webhook_body_is_slacks_with_fields_beside(person, cluster, sink):
    hook(person, sink)
    tell(person, cluster)
    delivery.deliver_due()
    said = json.loads(sink.got[0][2])
    assert said["text"].startswith("pt-mix was evicted.\nWhy: It held &lt;56&gt;.")
    assert said["notices"][0]["lines"] == [{"word": "Why", "sentence": "It held <56>."}]
    assert said["notices"][0]["kind"] == "evicted"


def test_secret_lies_encrypted_and_each_webhook_has_another(person, sink):
    (first, one), (_, two) = hook(person, sink), hook(person, sink, "other")
    assert one != two
    assert one not in first.sealed_secret
    assert webhooks.secret_of(first) == one


@pytest.mark.parametrize(
    ("name", "address", "field"),
    [("", "", "name"), ("x" * 64, "", "name"), ("a\nb", "", "name"), ("x", "https://localhost/", "address"),
     ("x", "gopher://x/", "address")],
)  # fmt: skip
def test_webhook_is_refused_at_its_field(person, name, address, field):
    with pytest.raises(ServiceError) as refusal:
        webhooks.add(person, name=name, address=address)
    assert refusal.value.field == field
    assert not Webhook.objects.exists()


def test_sixth_webhook_and_second_of_a_name_are_refused(person, sink):
    for number in range(webhooks.MOST):
        hook(person, sink, f"n{number}")
    with pytest.raises(ServiceError, match="Remove one"):
        hook(person, sink, "more")
    Webhook.objects.filter(name="n4").delete()
    with pytest.raises(ServiceError, match="of that name"):
        hook(person, sink, "n0")


def test_webhook_that_comes_and_goes_is_told_in_the_audit_log(person, sink):
    made, _ = hook(person, sink)
    webhooks.remove(person, made)
    events.deliver_due()
    lines = AuditEntry.objects.filter(actor=person.username, subject="team").order_by("pk")
    assert [line.kind for line in lines] == ["webhook.added", "webhook.removed"]


def test_address_is_judged_again_when_it_is_sent(person, cluster, sink, settings):
    hook(person, sink)
    tell(person, cluster)
    settings.WEIR_WEBHOOK_INSIDE = []
    delivery.deliver_due()
    letter = Letter.objects.get(way="webhook")
    assert (letter.state, letter.tries, sink.got) == ("waiting", 1, [])
    assert "lies inside" in letter.fault


def test_redirect_counts_as_a_failure(person, cluster, sink):
    hook(person, sink)
    sink.status, sink.headers = 307, {"Location": sink.address}
    tell(person, cluster)
    delivery.deliver_due()
    assert Letter.objects.get(way="webhook").fault == "It answered 307."
    assert len(sink.got) == 1


# Once, again, dead


@pytest.mark.parametrize(
    ("tries", "seconds"),
    [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 960), (7, 1920), (8, 3840), (9, 7680), (20, 21600)],
)  # fmt: skip
def test_back_off_doubles_up_to_its_bound_and_jitter_halves_it_at_most(tries, seconds):
    assert delivery.wait_s(tries, 0.0) == seconds
    assert seconds / 2 < delivery.wait_s(tries, 0.999) < seconds


def test_failure_is_tried_again_later_under_the_same_number(person, cluster, sink):
    hook(person, sink)
    sink.status = 503
    tell(person, cluster)
    delivery.deliver_due()
    letter = Letter.objects.get(way="webhook")
    assert letter.due_at > timezone.now() + timedelta(seconds=14)
    assert delivery.deliver_due() == 0
    sink.status = 200
    pass_time(seconds=1)
    assert delivery.deliver_due() == 1
    assert len({headers["Weir-Delivery"] for _, headers, _ in sink.got}) == 1
    letter.refresh_from_db()
    assert (letter.state, letter.tries, letter.fault) == ("sent", 2, "")


def test_letter_is_dead_after_the_last_try(person, cluster, sink):
    hook(person, sink)
    sink.status = 500
    tell(person, cluster)
    for _ in range(delivery.MOST_TRIES + 2):
        delivery.deliver_due()
        pass_time(seconds=1)
    letter = Letter.objects.get(way="webhook")
    assert (letter.state, letter.tries) == ("dead", delivery.MOST_TRIES)
    assert len(sink.got) == delivery.MOST_TRIES


def test_place_that_fails_is_left_alone_for_the_rest_of_the_pass(person, cluster, sink):
    hook(person, sink)
    sink.status = 500
    for number in range(3):
        tell(person, cluster, number)
    assert delivery.deliver_due() == 3
    assert len(sink.got) == 1
    assert len(mail.outbox) == 3


def test_claimed_letter_is_nobody_elses_until_the_claim_runs_out(person, cluster):
    tell(person, cluster)
    now = timezone.now()
    first = delivery.claim(now)
    assert delivery.claim(now) is None
    second = delivery.claim(now + delivery.LEASE)
    assert second.pk == first.pk
    assert not delivery.settle(first, state="sent")
    assert delivery.settle(second, state="sent")


def test_letter_that_kills_its_worker_dies_too(person, cluster, monkeypatch):
    def killed(*_):
        raise SystemExit

    tell(person, cluster)
    monkeypatch.setattr(delivery, "_send", killed)
    for _ in range(delivery.MOST_TRIES):
        with pytest.raises(SystemExit):
            delivery.deliver_due()
        Letter.objects.update(claimed_until=timezone.now())
    assert Letter.objects.get().tries == delivery.MOST_TRIES
    delivery.deliver_due()
    assert Letter.objects.get().state == "dead"


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_each_letter_once(person, cluster, sink):
    hook(person, sink)
    for number in range(6):
        tell(person, cluster, number)
    start, sent = threading.Barrier(2), []

    def work():
        start.wait()
        sent.append(delivery.deliver_due())
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert sum(sent) == 12
    assert len(sink.got) == len(mail.outbox) == 6
    numbers = [headers["Weir-Delivery"] for _, headers, _ in sink.got]
    assert len(set(numbers)) == 6


# Dead ones, decided on


@pytest.fixture
def corpse(person, cluster) -> Letter:
    tell(person, cluster)
    Letter.objects.update(
        state="dead", tries=10, fault="It answered 500.", settled_at=timezone.now()
    )
    return Letter.objects.get()


def test_dead_letter_is_tried_again_from_the_first_try(corpse):
    dead.try_again(make_user("op"), corpse)
    assert delivery.deliver_due() == 1
    assert Letter.objects.get().tries == 1


def test_dead_letter_that_is_dropped_stays_so(corpse):
    op = make_user("op")
    dead.drop(op, corpse)
    with pytest.raises(ServiceError, match="already"):
        dead.try_again(op, corpse)
    assert delivery.deliver_due() == 0


def test_place_of_a_dead_letter_keeps_the_path_of_the_webhook(person, cluster, sink):
    made, _ = hook(person, sink)
    assert dead.place(letters.write_test(person, made)) == sink.host


def test_settled_letters_are_forgotten_and_dead_ones_are_not(corpse, person):
    old = timezone.now() - letters.KEPT - timedelta(days=1)
    Letter.objects.update(settled_at=old)
    assert letters.forget(timezone.now()) == 0
    Letter.objects.update(state="sent")
    assert letters.forget(timezone.now()) >= 1
    assert not Letter.objects.exists()
