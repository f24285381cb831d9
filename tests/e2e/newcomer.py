"""What an admin does on an empty installation, by clicks alone; each in a tab that knows where Weir is."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.portal.setup.conftest import PASSWORD

TREE = """
queues:
  - {{name: vision, namespace: {namespace}, access_group: vision-people, nominal: {{l4: 8}}}}
"""


def come_in(page: Page, link: str) -> None:
    """By the link, which makes the admin."""
    page.goto(urlsplit(link).path)
    page.get_by_label("User name").fill("boss")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in and set Weir up").click()


def paste(page: Page, kubeconfig: str) -> None:
    page.get_by_label("Name", exact=True).fill("fra1")
    page.get_by_label("Kubeconfig", exact=True).fill(kubeconfig)
    _connect(page)


def take_the_pods_account(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("fra1")
    page.get_by_label("Reached by").select_option("The account of the pod that Weir runs in")
    _connect(page)


def _connect(page: Page) -> None:
    page.get_by_role("button", name="Check and connect").click()
    expect(page.get_by_text("Nothing has been changed.")).to_be_visible()


def price_and_divide(page: Page, namespace: str) -> None:
    page.get_by_role("button", name="Go to classes").click()
    for price in page.get_by_label(re.compile("^price per gpu hour of ")).all():
        price.fill("0.45")
    page.get_by_role("button", name="Keep, go to queues").click()
    page.get_by_label("Queues as YAML").fill(TREE.format(namespace=namespace))
    page.get_by_role("button", name="Apply the file").click()


def make_team(page: Page) -> None:
    page.get_by_role("button", name="Make a team for each queue").click()
    page.get_by_label("Team", exact=True).select_option("vision")
    page.get_by_label("User name").fill("boss")
    page.get_by_label("Persona", exact=True).select_option("researcher")
    page.get_by_role("button", name="Give").click()


def go_to_enforce(page: Page) -> None:
    page.get_by_role("link", name="Go on").click()
    page.get_by_role("link", name="Go to enforce").click()


def line_to_type(page: Page) -> str:
    """The one that the page says is needed first, as a copy of it has it."""
    return page.locator(".checks code.command").inner_text()


def check_again(page: Page) -> None:
    page.get_by_role("link", name="Check again").click()
    expect(page.get_by_text("Needed first")).to_be_hidden()


def enforce(page: Page) -> None:
    if (left := page.get_by_label(re.compile("outside"))).count():
        left.check()
    page.get_by_role("button", name="Enforce fra1").click()


def submit_one(page: Page) -> None:
    page.goto("/c/fra1/submit/")
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("Image", exact=True).fill("work:1")
    page.get_by_label("Run-time limit").fill("1")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/w/*/")
