"""How many h100 hold two hours? Read on the page, set there, and taken on as a what-if."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from scheduling.models import Cluster
from tests.capacity import H100, studied
from tests.e2e.conftest import axe, sign_in
from tests.factories import example_cluster


@pytest.fixture
def cluster(live) -> Cluster:
    cluster = example_cluster()
    studied(cluster)
    return cluster


def test_how_many_h100_hold_two_hours(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    page.goto("/c/fra1/what-if/")
    page.locator(".tabs").get_by_role("link", name="Capacity").click()
    expect(page.locator("#finding")).to_contain_text("has no SLO set")

    page.get_by_text("Set SLOs").click()
    page.get_by_label("P90 wait, minutes").fill("120")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator("#finding")).to_contain_text(
        f"To hold its SLO of 2 h, {H100} needs 152 GPUs; it has 128."
    )
    expect(page.locator(".curve")).to_have_count(1)
    assert axe(page) == []

    page.get_by_role("row", name="+3 nodes").get_by_role("link").click()
    expect(page.get_by_role("rowheader", name=f"3 nodes {H100} more")).to_be_visible()
