"""An operator reads the three reports, narrows them, and takes the figures away."""

from __future__ import annotations

import csv
import re

import pytest

from portal.accounts.models import User
from tests.e2e.conftest import axe, sign_in
from tests.factories import NOW, example_cluster
from tests.portal.reports import history

CHARTS = {"utilization": 1, "waits": 3, "preemptions": 1}
TITLES = {"utilization": "Utilization", "waits": "Queue waits", "preemptions": "Preemptions"}


@pytest.fixture
def admin_page(page):
    cluster = example_cluster()
    history.write_samples(cluster, NOW, hours=72)
    history.write_workloads(cluster, NOW, count=300)
    history.write_evictions(cluster, NOW, count=40)
    sign_in(page, User.objects.get(username="admin"))
    return page


def drawn(page) -> int:
    """Charts that hold marks, not only an empty frame."""
    page.wait_for_selector(".plot .main-svg")
    return page.evaluate(
        "(marks) => [...document.querySelectorAll('.plot')]"
        ".filter((plot) => plot.querySelector(marks)).length",
        ".scatterlayer path.js-line, .barlayer .point path, .heatmaplayer image",
    )


def shift(page) -> float:
    """How far the page's parts have jumped while it loaded."""
    return page.evaluate(
        """() => new Promise((resolve) => new PerformanceObserver((list) => resolve(
            list.getEntries().reduce((sum, entry) => sum + entry.value, 0)
        )).observe({type: 'layout-shift', buffered: true}) || setTimeout(() => resolve(0), 300))"""
    )


def test_admin_opens_each_report_and_its_charts_are_drawn(admin_page):
    page = admin_page
    page.goto("/c/fra1/reports/utilization")
    for kind, count in CHARTS.items():
        page.locator(".tabs").get_by_role("link", name=TITLES[kind]).click()
        page.wait_for_url(f"**/reports/{kind}**")
        assert drawn(page) == count
        assert page.locator("#finding").is_visible()
        assert shift(page) < 0.05
        assert axe(page) == []


def test_admin_changes_range_class_and_queue_in_the_address(admin_page):
    page = admin_page
    page.goto("/c/fra1/reports/waits")
    page.locator("#range > summary").click()
    page.get_by_role("link", name="Last 24 hours").click()
    page.wait_for_url("**range=24h**")
    page.locator("#queue").select_option("research")
    page.wait_for_url("**queue=research**")
    assert "range=24h" in page.url
    page.locator("#classes > summary").click()
    page.get_by_label("h100-80gb").check()
    page.locator("#classes").get_by_role("button", name="Show").click()
    page.wait_for_url("**class=h100-80gb**")
    assert "user=" not in page.url
    assert drawn(page) == 3
    page.locator("#range > summary").click()
    page.locator("#from").fill("2026-11-18")
    page.locator("#range").get_by_role("button", name="Show").click()
    page.wait_for_url("**from=2026-11-18**")
    assert "range=" not in page.url


def test_range_that_ends_before_it_begins_stays_with_its_message(admin_page):
    page = admin_page
    page.goto("/c/fra1/reports/utilization?from=2026-11-18&to=2026-11-10")
    assert page.get_by_text("The range ends before it begins.").is_visible()
    assert page.locator("#to").input_value() == "2026-11-10"
    page.locator("#to").fill("2026-11-19")
    page.locator("#range").get_by_role("button", name="Show").click()
    page.wait_for_selector("#finding")
    assert drawn(page) == 1


def test_chart_follows_the_theme_and_has_a_table(admin_page):
    page = admin_page
    page.goto("/c/fra1/reports/utilization")
    drawn(page)
    fill = "() => getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    light = page.evaluate(fill)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => ({fill})() !== {light!r}")
    assert axe(page) == []
    page.get_by_text("Table", exact=True).click()
    assert page.locator(".as-table tbody tr").count() > 30


def test_csv_downloads_what_the_page_shows(admin_page):
    page = admin_page
    page.goto("/c/fra1/reports/preemptions")
    with page.expect_download() as download:
        page.locator(".page-head").get_by_role("link", name="CSV").click()
    assert re.fullmatch(r"fra1-preemptions-\w+\.csv", download.value.suggested_filename)
    rows = list(csv.DictReader(download.value.path().open()))
    counted = sum(int(row[rule]) for row in rows for rule in row if rule != "start")
    assert f"{counted} evictions" in page.locator("#finding").inner_text()


@pytest.mark.parametrize("kind", CHARTS)
def test_narrow_page_never_scrolls_sideways(admin_page, kind):
    page = admin_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/c/fra1/reports/{kind}")
    assert drawn(page) == CHARTS[kind]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


TALLER = """() => {
  document.querySelectorAll("#content section.card").forEach((card) => {
    const more = document.createElement("div");
    more.style.height = "900px";
    card.append(more);
  });
  window.dispatchEvent(new Event("load"));
}"""


def test_long_page_of_tall_cards_is_folded_on_a_phone(admin_page):
    page = admin_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/c/fra1/cluster/")
    page.evaluate(TALLER)
    assert page.evaluate("document.documentElement.scrollHeight") <= 3000
    page.get_by_role("button", name="Show: Facts").click()
    assert page.get_by_text("Reached by").is_visible()


COMES = """() => {
  const come = document.getElementById("content").cloneNode(true);
  const folded = [...come.querySelectorAll("[data-folded]")];
  folded.forEach((card) => card.removeAttribute("data-folded"));
  document.dispatchEvent(new CustomEvent("weir:came", { detail: come }));
  return [folded.length, come.querySelectorAll("[data-folded]").length];
}"""


def test_part_that_comes_stands_folded_as_the_page_does(admin_page):
    page = admin_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/c/fra1/cluster/")
    page.evaluate(TALLER)
    folded, still = page.evaluate(COMES)
    assert folded == still > 0
