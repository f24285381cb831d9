"""A person's own account: sign in, see where else, change the password, make a narrow token."""

import pytest
from django.test import Client

from portal.accounts.models import ApiToken, User
from tests.e2e.conftest import axe, sign_in
from tests.factories import example_cluster

OLD, NEW = "correct horse battery", "a much better horse"


@pytest.fixture
def lead(transactional_db):
    example_cluster()
    user = User.objects.get(username="lead")
    user.set_password(OLD)
    user.save()
    return user


def test_new_password_ends_what_was_open_elsewhere(page, lead):
    elsewhere = Client(headers={"user-agent": "X11; Linux Firefox/140.0"})
    elsewhere.force_login(lead)
    page.goto("/sign-in/")
    page.get_by_label("User name").fill("lead")
    page.get_by_label("Password").fill(OLD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.goto("/account/")
    assert page.get_by_role("button", name="End the others").is_visible()
    page.get_by_role("link", name="Change password").click()
    assert axe(page) == []

    page.get_by_label("Password until now").fill(OLD)
    page.get_by_label("New password", exact=True).fill(NEW)
    page.get_by_label("New password again").fill("another")
    page.get_by_role("button", name="Change password").click()
    assert page.get_by_text("The two new passwords differ.").is_visible()
    page.get_by_label("Password until now").fill(OLD)
    page.get_by_label("New password", exact=True).fill(NEW)
    page.get_by_label("New password again").fill(NEW)
    page.get_by_role("button", name="Change password").click()

    page.get_by_text("Your password is changed").wait_for()
    assert elsewhere.get("/account/").status_code == 302


def test_token_is_as_narrow_as_was_chosen(page, lead):
    sign_in(page, lead)
    page.goto("/account/")
    page.get_by_label("Name", exact=True).fill("ci")
    page.get_by_label("Submit, hold and cancel work").check()
    page.get_by_role("button", name="Make a token").click()

    page.get_by_text("Token ci is made.").wait_for()
    assert page.get_by_role("rowheader", name="ci read, submit, hold").is_visible()
    assert ApiToken.objects.get().scopes == ["read", "work"]
    assert axe(page) == []


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", ["/account/", "/account/password/"])
def test_account_fits_its_screen(page, lead, path, width):
    page.set_viewport_size({"width": width, "height": 900})
    sign_in(page, lead)
    page.goto(path)

    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_page_above_the_bound_of_streams_polls(page, lead, settings):
    settings.WEIR_LIVE_STREAMS = 0
    sign_in(page, lead)
    with page.expect_response(lambda answer: answer.url.endswith("live?once=1")) as polled:
        page.goto("/c/fra1/")

    assert polled.value.ok
    assert page.locator("#live").get_attribute("data-state") == "live"
