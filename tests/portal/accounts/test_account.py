"""A person's own page: tokens are shown once, revoked for good, and never somebody else's."""

from datetime import timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import MOST_TOKENS, ApiToken
from scheduling.models import Queue
from tests.factories import make_cluster, make_member, make_user

pytestmark = pytest.mark.django_db
URL = "/account/"


@pytest.fixture
def person(client):
    user = make_user("m.okafor")
    client.force_login(user)
    return user


def issue(client, name="laptop", days="90"):
    return client.post("/account/tokens/", {"name": name, "days": days})


def test_token_is_shown_once_and_works(client, person):
    page = issue(client)
    plain = page.context["plain"]

    assert plain in page.content.decode()
    assert "no-store" in page.headers["Cache-Control"]
    assert plain not in client.get(URL).content.decode()
    token = ApiToken.objects.get(digest=ApiToken.digest_of(plain))
    assert token.user == person
    assert token.expires_at - timezone.now() == pytest.approx(
        timedelta(days=90), abs=timedelta(minutes=1)
    )


def test_token_without_end_is_open_where_that_is_allowed(client, person, settings):
    settings.WEIR_ENDLESS_TOKENS = True
    issue(client, days="")

    assert ApiToken.objects.get().expires_at is None


def test_token_name_is_escaped(client, person):
    assert b"<script>x" not in issue(client, "<script>x").content


@pytest.mark.parametrize(
    ("name", "days", "field"),
    [("", "90", "name"), ("x" * 64, "90", "name"), (" ", "30", "name"), ("x", "366", "days")],
)
def test_bad_token_is_refused_at_the_field(client, person, name, days, field):
    page = issue(client, name, days)

    assert page.status_code == 400
    assert list(page.context["token_form"].errors) == [field]
    assert ApiToken.objects.count() == 0


def test_more_tokens_than_anybody_needs_are_refused(client, person):
    for number in range(MOST_TOKENS):
        ApiToken.issue(person, f"t{number}")

    assert "Revoke one" in issue(client).content.decode()
    assert person.api_tokens.count() == MOST_TOKENS


def test_revoked_token_is_gone(client, person):
    token, _ = ApiToken.issue(person, "old")

    assert client.post(f"/account/tokens/{token.pk}/revoke/").status_code == 302
    assert not person.api_tokens.exists()


def test_token_of_somebody_else_is_absent(client, person):
    token, _ = ApiToken.issue(make_user(), "theirs")

    assert client.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
    assert ApiToken.objects.filter(pk=token.pk).exists()
    assert "theirs" not in client.get(URL).content.decode()


def test_account_shows_teams_and_what_the_persona_may(client):
    cluster = make_cluster()
    root = Queue.objects.create(cluster=cluster, name="fra1")
    client.force_login(make_member(root, may_submit=True, may_approve=True))

    page = client.get(URL).content.decode()

    assert "team-fra1" in page
    for capability in ("submit", "approve requests"):
        assert capability in page


def test_time_zone_is_kept_and_checked(client, person):
    assert (
        client.post("/account/time-zone/", {"display_time_zone": " Asia/Tokyo "}).status_code == 302
    )
    page = client.post("/account/time-zone/", {"display_time_zone": "Moon/Base"})

    person.refresh_from_db()
    assert person.display_time_zone == "Asia/Tokyo"
    assert page.status_code == 400
    assert 'value="Moon/Base"' in page.content.decode()


@pytest.mark.parametrize("path", ["", "tokens/", "tokens/1/revoke/", "time-zone/"])
def test_account_needs_a_person(client, path):
    answer = client.get(URL + path)

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in/?next=")
