"""Pages of webhooks, of dead letters, and of what a demo sent."""

import re

import pytest
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.notices import delivery, webhooks
from portal.notices.arrivals import MailBackend, take
from portal.notices.models import Arrival, Letter, Webhook
from portal.notices.wording import signature
from scheduling.services.events import deliver_due
from tests.factories import example_cluster, make_user
from workshop.demo import ways
from workshop.management.commands.demo import at_home

pytestmark = pytest.mark.django_db

SINK = "http://127.0.0.1:8765"


@pytest.fixture
def cluster(settings):
    settings.WEIR_WEBHOOK_HTTP = True
    settings.WEIR_WEBHOOK_INSIDE = ["127.0.0.1:8765"]
    return example_cluster()


def as_(client, name):
    client.force_login(User.objects.get(username=name))
    return client


def page(client, name="notices") -> str:
    return client.get(reverse(f"web:{name}")).content.decode()


@pytest.fixture
def letter(cluster) -> Letter:
    """Of the researcher, dead."""
    user = User.objects.get(username="researcher")
    hook, _ = webhooks.add(user, name="team", address=f"{SINK}/secret-path")
    return Letter.objects.create(
        user=user, way="webhook", webhook=hook, key="test 1", made_at=timezone.now(), due_at=timezone.now(),
        state="dead", tries=10, fault="It answered 503.", settled_at=timezone.now(),
    )  # fmt: skip


def test_secret_is_shown_once(cluster, client):
    as_(client, "researcher")
    sent = {"name": "team", "address": f"{SINK}/x"}
    shown = client.post(reverse("web:webhook_add"), sent).content.decode()
    secret = re.search(r"whsec_[\w-]+", shown)[0]
    assert webhooks.secret_of(Webhook.objects.get()) == secret
    assert "whsec_" not in page(client)
    assert "127.0.0.1:8765" in page(client)


def test_refused_address_comes_back_with_its_remedy(cluster, client):
    as_(client, "researcher")
    sent = {"name": "team", "address": "https://localhost/x"}
    answer = client.post(reverse("web:webhook_add"), sent)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert 'value="https://localhost/x"' in text
    assert 'aria-invalid="true"' in text
    assert "WEIR_WEBHOOK_INSIDE" in text


def test_webhook_of_somebody_else_is_as_one_that_is_not(letter, client):
    as_(client, "lead")
    for name in ("webhook_remove", "webhook_test"):
        assert client.post(reverse(f"web:{name}", args=[letter.webhook_id])).status_code == 404
    assert Webhook.objects.exists()


def test_mail_without_a_server_is_said_to_be_not_set_up(cluster, client, settings):
    as_(client, "researcher")
    assert "WEIR_MAIL_HOST" in page(client)
    settings.WEIR_MAIL_HOST = "mail.example.org"
    assert "WEIR_MAIL_HOST" not in page(client)


def test_ways_are_saved_from_the_page(cluster, client):
    as_(client, "researcher")
    sent = {"evicted": "at_once", "ways_evicted": ["webhook"], "digest_hour": "8"}
    client.post(reverse("web:notice_preferences"), sent)
    row = User.objects.get(username="researcher").notice_preferences.get()
    assert (row.mail, row.webhook) == (False, None)


def test_test_letter_is_written_from_the_page(letter, client):
    as_(client, "researcher").post(reverse("web:webhook_test", args=[letter.webhook_id]))
    assert Letter.objects.filter(state="waiting").count() == 1


def test_operator_sees_whom_where_and_why_without_what(letter, client):
    text = page(as_(client, "admin"), "dead_letters")
    assert "researcher" in text
    assert "It answered 503." in text
    assert "secret-path" not in text


@pytest.mark.parametrize(("act", "state"), [("again", "waiting"), ("drop", "dropped")])
def test_operator_decides_on_a_dead_letter_once_and_it_is_audited(letter, client, act, state):
    as_(client, "admin")
    address = reverse(f"web:dead_letter_{act}", args=[letter.pk])
    client.post(address)
    letter.refresh_from_db()
    assert letter.state == state
    assert client.post(address).status_code == 404
    deliver_due()
    entry = AuditEntry.objects.get(kind__startswith="letter.")
    assert (entry.actor, entry.after["state"]) == ("admin", state)
    assert "secret-path" not in str(entry.after)


def test_queries_of_the_page_do_not_grow_with_letters(
    letter, client, django_assert_max_num_queries
):
    as_(client, "admin")
    for number in range(20):
        Letter.objects.create(
            user=letter.user, way="webhook", webhook=letter.webhook, key=f"test x{number}", state="dead",
            made_at=timezone.now(), due_at=timezone.now(), settled_at=timezone.now(),
        )  # fmt: skip
    page(client, "dead_letters")
    with django_assert_max_num_queries(20):
        page(client, "dead_letters")


# A demo


@pytest.fixture
def demo(cluster, settings):
    settings.DEMO = True
    settings.WEIR_ADDRESS = SINK
    ways.open_ways()
    return User.objects.get(username="researcher")


def test_demo_calls_nothing_but_itself():
    told = at_home(8765)
    assert told["WEIR_WEBHOOK_INSIDE"] == "127.0.0.1:8765"
    assert told["WEIR_ADDRESS"] == SINK


def test_mail_of_a_demo_shows_on_the_page_of_whom_it_is_for(demo, client):
    message = EmailMessage("pt-mix was evicted.", "Why", to=[demo.email])
    assert MailBackend().send_messages([message]) == 1
    assert "pt-mix was evicted." in page(as_(client, "researcher"), "sent")
    assert "pt-mix was evicted." not in page(as_(client, "lead"), "sent")


def call(client, webhook, secret, **more):
    body, at = b'{"text": "hello"}', "1700000000"
    headers = {
        "Weir-Webhook": str(webhook.pk), "Weir-Timestamp": at,
        "Weir-Signature": signature(secret, at, body), **more,
    }  # fmt: skip
    return client.post(
        reverse("web:sent_sink"), body, content_type="application/json", headers=headers
    )


def test_webhook_of_a_demo_shows_where_its_signature_is_right(demo, client):
    webhook = demo.webhooks.get()
    secret = webhooks.secret_of(webhook)
    assert call(client, webhook, secret).status_code == 200
    for wrong in ({"Weir-Signature": "v1=0"}, {"Weir-Timestamp": "1"}, {"Weir-Webhook": "999"},
                  {"Weir-Webhook": "9" * 30}, {"Weir-Webhook": "x"}):  # fmt: skip
        assert call(client, webhook, secret, **wrong).status_code == 404
    assert Arrival.objects.count() == 1
    assert "hello" in page(as_(client, "researcher"), "sent")


def test_what_delivery_sends_is_what_the_sink_takes(demo, monkeypatch):
    def post(target, body, headers):
        return 200 if take(headers, body) else 404

    monkeypatch.setattr(delivery, "post", post)
    webhooks.send_test(demo, demo.webhooks.get())
    assert delivery.deliver_due() == 1
    assert "This is a test from Weir." in Arrival.objects.get().body


def test_second_start_at_another_port_leads_webhooks_there(demo, settings):
    settings.WEIR_ADDRESS = "http://127.0.0.1:9999"
    ways.open_ways()
    assert demo.webhooks.get().address == "http://127.0.0.1:9999/notices/sent/sink/"


def test_outside_of_a_demo_there_is_neither_page_nor_sink(demo, client, settings):
    settings.DEMO = False
    webhook = demo.webhooks.get()
    assert call(client, webhook, webhooks.secret_of(webhook)).status_code == 404
    client.force_login(make_user())
    assert client.get(reverse("web:sent")).status_code == 404


@pytest.mark.parametrize(("is_demo", "begins"), [(True, f"{SINK}/notices/sent/sink/"), (False, "")])
def test_new_webhook_begins_with_the_sink_in_a_demo_alone(demo, client, settings, is_demo, begins):
    settings.DEMO = is_demo
    client.force_login(demo)
    assert client.get(reverse("web:notices")).context["hook_form"]["address"].value() == begins


def test_what_was_sent_ends_after_ten_with_all(client, cluster, settings):
    settings.DEMO = True
    reader = User.objects.get(username="researcher")
    for number in range(12):
        Arrival.objects.create(
            user=reader, way="mail", at=timezone.now(), to="r@example.org", body=f"letter {number}"
        )
    client.force_login(reader)
    page = client.get(reverse("web:sent")).content.decode()

    assert page.count("<article") == 10
    assert "All 12" in page
    assert client.get(reverse("web:sent") + "?all").content.decode().count("<article") == 12
