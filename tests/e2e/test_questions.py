"""What people open the reports for: one question each, answered on the pages."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.alerts import watching
from portal.reports.budgets import set_budget
from scheduling.models import MILLI, Cluster, GpuUse, IdleSpell, State, Workload
from tests.e2e.conftest import axe, sign_in
from tests.e2e.test_admin import drawn
from tests.factories import NOW, example_cluster, make_workload
from tests.portal.reports import history
from workshop.demo.organisation import H100

HOUR = timedelta(hours=1)


@pytest.fixture
def cluster(live) -> Cluster:
    """Three days of samples and work, and two workloads on whose GPUs nothing runs."""
    cluster = example_cluster()
    history.write_samples(cluster, NOW, hours=72)
    history.write_workloads(cluster, NOW, count=200)
    history.write_evictions(cluster, NOW, count=30)
    h100 = cluster.gpu_classes.get(name=H100)
    for name, gpus, hours in (("canary", 4, 16), ("scratch", 1, 2)):
        work = make_workload(
            cluster.queues.get(name="vision"), name=name, uid=name, user="a.novak", gpus=gpus * MILLI,
            members=1, gpu_class=h100, state=State.RUNNING, started_at=NOW - 20 * HOUR,
        )  # fmt: skip
        IdleSpell.objects.create(
            workload=work,
            gpu_class=h100,
            gpus=gpus * MILLI,
            since=NOW - hours * HOUR,
            memory_mib=900,
        )
        GpuUse.objects.create(
            workload=work, gpu_class=h100, start=NOW - 10 * HOUR, gpu_s=50_000, active_gpu_s=900,
            memory_peak_mib=900, memory_total_mib=81_559,
        )  # fmt: skip
    return cluster


@pytest.fixture
def admin(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    return page


def tab(page, name: str) -> None:
    page.locator(".tabs").get_by_role("link", name=name).click()


def test_how_well_were_the_h100s_used(admin):
    page = admin
    page.goto("/c/fra1/reports/utilization?range=24h")
    page.locator("#classes > summary").click()
    page.get_by_label(H100).check()
    page.locator("#classes").get_by_role("button", name="Show").click()
    tab(page, "Real use")

    expect(page.locator("#finding")).to_contain_text("60 % of what was allocated was really used")
    assert f"class={H100}" in page.url
    assert drawn(page) == 1
    assert axe(page) == []


def test_who_waited_longest_and_why(admin):
    page = admin
    page.goto("/c/fra1/reports/utilization")
    tab(page, "Longest waits")

    expect(page.locator("#finding")).to_contain_text("waiting hours")
    expect(page.locator(".longest tbody tr").first).to_contain_text(" h")


def test_who_evicted_whom_and_what_did_it_cost(admin):
    page = admin
    page.goto("/c/fra1/reports/utilization")
    tab(page, "Preemptions")
    expect(page.locator(".matrix")).to_be_visible()
    tab(page, "Showback")

    cell = page.locator(".cell", has_text="Lost to evictions").locator(".cell-figure")
    assert cell.inner_text() != "€0"


def test_which_idle_gpus_cost_most_and_whose_they_are(admin):
    page = admin
    page.goto("/c/fra1/reports/use")
    first = page.locator("#idle-rows tbody tr").first
    expect(first).to_contain_text("canary")
    expect(first).to_contain_text("a.novak")
    expect(first).to_contain_text("16 h")
    first.get_by_role("button", name="Nudge: canary").click()

    expect(page.get_by_text("a.novak is told of canary again.")).to_be_visible()
    sign_in(page, User.objects.get(username="a.novak"))
    page.goto("/notices/")
    expect(page.get_by_text("Nothing has run on 4 GPUs of canary for 16 h.")).to_be_visible()
    page.goto("/c/fra1/reports/use")
    assert axe(page) == []


def test_when_is_the_budget_spent(admin, cluster):
    today = NOW.date()
    set_budget(
        queue=cluster.queues.get(name="products"), amount=4000, begin=today.replace(day=1),
        end=today + timedelta(days=60), by=User.objects.get(username="admin"),
    )  # fmt: skip
    page = admin
    page.goto("/c/fra1/reports/showback")

    expect(page.locator("#budgets")).to_contain_text("products")
    assert drawn(page) == 1
    assert axe(page) == []
    page.get_by_role("link", name="Edit budgets").click()
    page.get_by_label("Queue", exact=True).select_option("research")
    page.get_by_label("Amount, EUR").fill("90000")
    page.get_by_label("From", exact=True).fill("2026-11-01")
    page.get_by_label("To, that day included").fill("2026-12-31")
    page.get_by_role("button", name="Set it").click()
    expect(page.get_by_text("The budget is set.")).to_be_visible()


def test_what_would_an_edited_rule_have_done(admin, cluster):
    Workload.objects.filter(name="canary").update(submitted_at=NOW - 30 * HOUR)
    watching.look(cluster)
    page = admin
    page.goto("/c/fra1/alerts/")
    row = page.locator("#alert-rows tbody tr", has_text="Idle GPUs")
    expect(row).to_contain_text("Firing")
    expect(row).to_contain_text("canary")
    row.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("admin looks after it")).to_be_visible()
    page.locator("#alert-rows tbody tr", has_text="Idle GPUs").get_by_role(
        "link", name="Edit"
    ).click()
    page.get_by_label("Fires over").fill("60")

    expect(page.locator("#tried")).to_contain_text("1 h")
    expect(page.locator("#tried")).to_contain_text("As it is, it would have fired 1 time.")
    assert drawn(page) == 1
    assert axe(page) == []
    page.get_by_role("button", name="Save rule").click()
    expect(page.get_by_text("Saved:")).to_be_visible()


def test_who_evicted_whom_down_to_the_single_evictions(admin):
    admin.goto("/c/fra1/reports/preemptions")
    cell = admin.locator(".matrix td a").first
    told = cell.get_attribute("aria-label")
    cell.click()
    expect(admin.locator(".matrix td.chosen")).to_be_visible()
    singles = admin.locator("#singles")
    expect(singles.get_by_role("heading")).to_contain_text("of ")
    assert singles.locator("tbody tr").count() == int(told.split()[0])
    assert axe(admin) == []


def test_which_free_gpus_are_of_no_use(admin):
    admin.goto("/c/fra1/reports/utilization")
    tab(admin, "Fragmentation")
    expect(admin.locator("#finding")).to_contain_text("free GPU")
    expect(admin.get_by_role("heading", name="Free and of no use now")).to_be_visible()
    assert axe(admin) == []


def test_view_is_kept_found_again_and_its_figure_saved_as_a_picture(admin):
    admin.goto("/c/fra1/reports/utilization?range=24h&class=h100-80gb")
    drawn(admin)
    with admin.expect_download() as picture:
        admin.get_by_role("button", name="PNG of Allocated by GPU class").click()
    assert picture.value.suggested_filename == "allocated.png"
    with open(picture.value.path(), "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    admin.locator("details.views summary").click()
    admin.get_by_label("Keep this view as").fill("H100s of the day")
    admin.get_by_label("Tell me each Monday").check()
    admin.get_by_role("button", name="Keep", exact=True).click()
    admin.goto("/c/fra1/reports/waits")
    admin.locator("details.views summary").click()
    admin.get_by_role("link", name="H100s of the day").click()
    assert admin.url.endswith("/c/fra1/reports/utilization?range=24h&class=h100-80gb")
    admin.goto("/c/fra1/reports/views")
    expect(admin.get_by_text("told · ")).to_be_visible()
    assert axe(admin) == []
