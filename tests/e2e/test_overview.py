"""Reading who is entitled to what, in a browser."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.web.frame.context import STALE_S
from scheduling.models import Cluster, Share, Workload
from tests.e2e.conftest import axe, sign_in
from tests.portal.web.example import overview_cluster


@pytest.fixture
def cluster(live):
    return overview_cluster()


@pytest.fixture
def admin(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    return page


@pytest.mark.parametrize("path", ["/c/fra1/", "/c/fra1/queues/", "/c/fra1/queues/alignment/"])
def test_page_meets_aa_and_never_scrolls_sideways(admin, path):
    admin.goto(path)
    for width, scheme in ((1440, "light"), (1440, "dark"), (768, "light"), (390, "light")):
        admin.set_viewport_size({"width": width, "height": 900})
        admin.emulate_media(color_scheme=scheme)
        assert axe(admin) == [], (width, scheme)
        assert admin.evaluate("document.documentElement.scrollWidth") == width
    for width in (721, 901, 1024, 1181):
        admin.set_viewport_size({"width": width, "height": 900})
        assert admin.evaluate("document.documentElement.scrollWidth") == width


def test_top_bar_of_a_cluster_that_runs_fast_fits_a_narrow_page(admin, cluster):
    now = timezone.now()
    Cluster.objects.update(clock_real=now, clock_start=now, clock_speed=60)
    for width in (721, 801, 961):
        admin.set_viewport_size({"width": width, "height": 900})
        admin.goto("/c/fra1/")
        assert admin.evaluate("document.documentElement.scrollWidth") == width


def test_axe_sees_a_fault(admin):
    admin.goto("/c/fra1/")
    admin.evaluate("document.documentElement.removeAttribute('lang')")
    assert any("html-has-lang" in fault for fault in axe(admin))


def test_change_of_the_cluster_shows_without_reload(admin, cluster):
    admin.goto("/c/fra1/")
    row = admin.locator('tr[data-path="research/language/alignment"]')
    expect(row.locator("td").nth(1)).to_have_text("12")
    admin.locator("[data-twist]").first.click()
    admin.evaluate("window.stays = true")
    link = admin.get_by_role("link", name="platform", exact=True)
    link.focus()
    Share.objects.filter(queue__name="platform").update(allocated=17000)
    cluster.touch()
    changed = admin.locator('tr[data-path="platform"] td').nth(1)
    expect(changed).to_have_text("17")
    assert admin.evaluate("window.stays")
    expect(row).to_be_hidden()
    expect(link).to_be_focused()


def test_what_somebody_types_is_left_until_they_are_done(admin, cluster):
    admin.goto("/c/fra1/")
    admin.evaluate(
        "document.querySelector('tr[data-path=platform]').closest('[data-live-url]')"
        ".insertAdjacentHTML('beforeend', '<label>Note <input id=note></label>')"
    )
    note, shown = admin.locator("#note"), admin.locator('tr[data-path="platform"] td').nth(1)
    before = shown.inner_text()
    note.fill("half a sent")
    Share.objects.filter(queue__name="platform").update(allocated=17000)
    cluster.touch()
    admin.wait_for_timeout(3000)
    assert shown.inner_text() == before
    expect(note).to_have_value("half a sent")
    note.fill("")
    note.blur()
    expect(shown).to_have_text("17")


def test_theme_chosen_once_holds_on_the_next_page_from_the_first_byte(admin):
    admin.goto("/c/fra1/")
    admin.get_by_label(re.compile("admin: menu")).click()
    admin.get_by_role("button", name="Dark").click()
    response = admin.goto("/c/fra1/queues/")
    assert 'data-theme="dark"' in response.text()


def test_slash_finds_a_queue_by_keyboard_alone(admin):
    admin.goto("/c/fra1/")
    admin.keyboard.press("/")
    admin.keyboard.type("align")
    expect(admin.locator("#search-results .found-item").first).to_have_text(
        "research/language/alignment"
    )
    admin.keyboard.press("ArrowDown")
    admin.keyboard.press("Enter")
    expect(admin).to_have_url(re.compile("/c/fra1/queues/alignment/$"))


def test_menu_opens_on_a_narrow_screen(admin):
    admin.set_viewport_size({"width": 390, "height": 800})
    admin.goto("/c/fra1/")
    link = admin.get_by_role("link", name=re.compile("^Queues"))
    expect(link).to_be_hidden()
    admin.get_by_role("button", name="Menu").click()
    expect(link).to_be_visible()
    admin.keyboard.press("Escape")
    expect(link).to_be_hidden()


def test_stopped_engine_shows_as_stale(admin, cluster):
    late = timezone.now() - timedelta(seconds=STALE_S - 10)
    Cluster.objects.filter(pk=cluster.pk).update(cycle_interval_s=0.1, planned_at=late)
    admin.goto("/c/fra1/")
    expect(admin.locator("#live")).to_contain_text("Stale")


def test_page_holds_with_a_single_workload(admin, cluster):
    Workload.objects.filter(cluster=cluster).delete()
    admin.goto("/c/fra1/")
    expect(admin.locator("#waits")).to_contain_text("Nothing of yours waits")
