"""A person adds a webhook in a browser, sends a test, and sees it arrive, as a visitor of a demo does."""

import pytest

from portal.accounts.models import User
from portal.notices import delivery
from tests.factories import example_cluster


@pytest.fixture
def demo(live, settings):
    settings.DEMO = True
    settings.WEIR_ADDRESS = live
    settings.WEIR_WEBHOOK_HTTP = True
    settings.WEIR_WEBHOOK_INSIDE = [live.removeprefix("http://")]
    example_cluster()
    user = User.objects.get(username="admin")
    user.set_password("weir-e2e-password")
    user.email = "admin@demo.invalid"
    user.save()
    return live


def test_test_of_a_new_webhook_arrives_on_the_page(demo, browser):
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(f"{demo}/sign-in/?next=/notices/")
    page.fill("input[name=username]", "admin")
    page.fill("input[type=password]", "weir-e2e-password")
    page.press("input[type=password]", "Enter")
    page.wait_for_url("**/notices/")
    page.fill("#hook-name", "team")
    page.fill("#hook-address", "https://localhost/x")
    page.click("text=Add webhook")
    assert "lies inside the network" in page.inner_text("#hook-address_error")
    page.fill("#hook-address", f"{demo}/notices/sent/sink/")
    page.click("text=Add webhook")
    assert page.inner_text("code.secret").startswith("whsec_")
    page.click("button:has-text('Send a test to team')")
    page.wait_for_load_state()
    assert delivery.deliver_due() == 1
    page.goto(f"{demo}/notices/sent/")
    assert "This is a test from Weir." in page.inner_text("pre.sent")
    page.close()
