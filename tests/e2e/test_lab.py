"""The policy lab in a browser: an experiment is begun, left, found again, cancelled in part, promoted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from scheduling.models import Study
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running
from tests.e2e.conftest import axe, sign_in
from tests.factories import NOW, example_cluster
from tests.foresight import live_of
from tests.lab import with_work


@pytest.fixture
def admin(page, live, monkeypatch):
    cluster = example_cluster()
    with_work(cluster)
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "send", lambda pk: None)
    sign_in(page, User.objects.get(username="admin"))
    return page


def add(page, summary: str, **fields: str) -> None:
    page.locator(".add > summary", has_text=summary).click()
    form = page.locator(".add", has=page.locator("summary", has_text=summary))
    for label, value in fields.items():
        field = form.get_by_label(label.replace("_", " "), exact=False)
        if field.evaluate("e => e.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    form.get_by_role("button", name="Add").click()


def test_experiment_is_begun_left_found_again_cancelled_and_promoted(admin):
    page = admin
    page.goto("/c/fra1/studies/")
    expect(page.get_by_text("No study yet")).to_be_visible()
    page.get_by_role("link", name="New experiment").click()
    page.get_by_label("Name", exact=True).fill("Order and supply")
    page.get_by_role("textbox", name="First day judged").fill(str((NOW - timedelta(days=8)).date()))
    page.get_by_role("textbox", name="Last day judged").fill(str((NOW - timedelta(days=4)).date()))
    page.get_by_label("Warm-up before, days").fill("2")
    page.get_by_label("Replays of each variant").fill("6")
    add(page, "Policy", Setting="order", Value="shortest_predicted")
    add(page, "Capacity", Nodes_more="2")
    assert axe(page) == []
    page.get_by_role("button", name="Run 3 variants").click()
    expect(page.locator(".finding")).to_contain_text("Too few replays")

    page.goto("/c/fra1/overview/")
    made = Study.objects.get()
    running.work(made.pk, budget_s=0.01)
    page.goto("/c/fra1/studies/")
    page.get_by_role("link", name="Order and supply").click()
    row = page.locator(".variants tbody tr", has_text="2 nodes")
    row.get_by_role("button", name="Cancel").click()
    expect(page.locator(".variants tbody tr", has_text="2 nodes")).to_contain_text("cancelled")

    while running.work(made.pk):
        pass
    expect(page.locator(".variants tbody tr", has_text="shortest")).to_contain_text("6 of 6")
    expect(page.locator("#by-queue")).to_contain_text("speech")
    page.reload()
    assert axe(page) == []
    page.locator("#promote").get_by_label("Variant").select_option("B")
    page.get_by_label("Reason, kept in the history").fill("shorter work first")
    page.get_by_role("button", name="Promote").click()

    expect(page.get_by_role("heading", name="Policy of fra1")).to_be_visible()
    expect(page.get_by_text("not saved yet")).to_be_visible()
    assert page.locator("#order").input_value() == "shortest_predicted"
    page.goto(f"/c/fra1/studies/{made.pk}/")
    expect(page.get_by_role("heading", name="B is promoted")).to_be_visible()
