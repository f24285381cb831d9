"""A team lead signs in, divides, meets a conflict, mends it, saves and finds it in the history."""

from decimal import Decimal

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.teams.models import Team
from scheduling.models import Queue, QuotaChange
from scheduling.services.queues.save import Field, QuotaCell, save_quotas
from tests.e2e.conftest import axe, sign_in
from tests.factories import example_cluster
from tests.scheduling.kube import eventually
from workshop.demo.organisation import H100

RIGHT = "weir-lead"
URL = "/c/fra1/quotas/research/"


@pytest.fixture
def lead(live):
    example_cluster()
    user = User.objects.get(username="lead")
    user.set_password(RIGHT)
    user.save()
    return user


def cell(page, label):
    return page.get_by_label(label, exact=True)


def test_lead_divides_meets_a_conflict_mends_it_and_saves(page, lead):
    page.goto(URL)
    page.fill("#username", "lead")
    page.fill("#password", RIGHT)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Quotas of research")).to_be_visible()
    save = page.locator("[data-save]")
    expect(save).to_be_disabled()

    cell(page, "language, h100-80gb, nominal").fill("44")
    cell(page, "alignment, h100-80gb, nominal").fill("20")
    faults = page.locator("#faults")
    expect(faults).to_contain_text("research was given 64 and its queues would hold 72.")
    expect(page.locator("[data-why]")).to_have_text("1 error to fix first")
    expect(page.locator("tr.sum", has_text="language")).to_contain_text("44 of 44 given, 0 left")
    expect(page.locator("tr.sum", has_text="research")).to_contain_text("72 of 64: 8 too many")

    cell(page, "vision, h100-80gb, nominal").fill("8")
    expect(faults).to_be_hidden()
    expect(page.locator("[data-why]")).to_have_text("Write a reason first")
    page.fill("#reason", "DPO runs need two whole nodes")
    expect(save).to_have_text("Save 3 edits")
    save.click()

    expect(page.locator(".notice", has_text="Saved 3 edits")).to_be_visible()
    last = page.locator(".changes tbody tr").first
    expect(last).to_contain_text("language 36 → 44, alignment 12 → 20, vision 16 → 8")
    expect(last).to_contain_text("DPO runs need two whole nodes")
    assert QuotaChange.objects.get().author == lead


def test_save_waits_for_its_preview_and_says_where_it_comes_without(page, lead):
    sign_in(page, lead)
    waiting = []

    def hold_back(route):
        waiting.append(route)

    page.route("**/quotas/research/preview/", hold_back)
    page.goto(URL)
    cell(page, "vision, h100-80gb, nominal").fill("8")
    page.fill("#reason", "Less")
    save = page.locator("[data-save]")
    expect(page.locator("[data-why]")).to_have_text("Save waits for its preview")
    expect(page.locator("[data-planning]")).to_be_visible()
    expect(save).to_be_disabled()
    eventually(lambda: page.wait_for_timeout(20) or waiting)
    waiting[-1].abort()
    expect(save).to_be_enabled()
    expect(save).to_have_text("Save 1 edit without its preview")


def test_edits_from_a_file_are_planned_before_save_takes_them(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    page.fill("#tree", "queues:\n- name: vision\n  nominal: {h100-80gb: 8}\n")
    page.get_by_role("button", name="Fill in").click()
    expect(cell(page, "vision, h100-80gb, nominal")).to_have_value("8")
    expect(page.locator("#preview")).to_contain_text("vision is lowered by 8 h100-80gb")


def test_fault_of_the_server_stays_until_the_grid_is_touched(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    cell(page, "vision, h100-80gb, nominal").fill("8")
    page.fill("#reason", "Less")
    page.fill("#effective-from", "2020-01-01T00:00")
    page.locator("[data-save]").click()

    expect(page.locator("#from-hint")).to_contain_text("has passed")
    expect(cell(page, "vision, h100-80gb, nominal")).to_have_value("8")
    expect(page.locator("[data-save]")).to_be_disabled()
    page.fill("#effective-from", "")
    expect(page.locator("[data-save]")).to_be_enabled()


def test_edit_that_somebody_overtook_can_be_saved_again_as_the_page_says(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    cell(page, "vision, h100-80gb, nominal").fill("8")
    page.fill("#reason", "Less")
    research = Queue.objects.get(name="research")
    other = QuotaCell("speech", H100, Field.NOMINAL, Decimal(6))
    save_quotas(queue=research, cells=[other], author=None, reason="Meanwhile")
    save = page.locator("[data-save]")
    save.click()

    expect(page.locator("#faults")).to_contain_text("while you were editing")
    expect(page.locator("[data-why]")).to_have_text("Read what is in force now, then save again")
    expect(save).to_be_enabled()
    save.click()
    expect(page.locator(".notice", has_text="Saved 1 edit")).to_be_visible()


def test_keyboard_walks_the_grid_and_escape_takes_an_edit_back(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    first = cell(page, "language, h100-80gb, nominal")
    first.focus()
    page.keyboard.type("40")
    page.keyboard.press("Enter")
    expect(cell(page, "pretraining, h100-80gb, nominal")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(cell(page, "pretraining, h100-80gb, borrowing limit")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    expect(first).to_be_focused()
    page.keyboard.press("Escape")
    expect(first).to_have_value("36")
    expect(page.locator("[data-badge=edits]")).to_be_hidden()


def test_classes_come_and_go_without_losing_what_was_typed(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    cell(page, "vision, h100-80gb, nominal").fill("8")
    page.get_by_role("link", name="l4").click()
    expect(cell(page, "vision, l4, nominal")).to_be_visible()
    page.get_by_role("link", name="h100-80gb").click()
    expect(cell(page, "vision, h100-80gb, nominal")).to_be_hidden()
    assert page.url.endswith("?class=a100-40gb&class=l4")
    expect(page.locator("[data-badge=edits]")).to_have_text("1 edit")


@pytest.mark.parametrize(
    "path", [URL, "/c/fra1/quotas/fra1/", "/c/fra1/quotas/language/edit/", "/account/"]
)
def test_page_meets_aa_and_never_scrolls_sideways(page, lead, path):
    sign_in(page, User.objects.get(username="admin"))
    page.goto(path)
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert axe(page) == [], (width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_conflict_meets_aa(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    cell(page, "alignment, a100-40gb, nominal").fill("4")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert axe(page) == [], scheme


def test_sign_in_page_meets_aa(page, lead, settings):
    settings.DEMO = True
    page.goto("/sign-in/")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert axe(page) == [], scheme


@pytest.mark.parametrize("width", [1280, 390])
def test_name_of_a_team_and_its_queue_stay_whole(page, lead, width):
    Team.objects.filter(name="research").update(name="Recommendations")
    page.set_viewport_size({"width": width, "height": 900})
    sign_in(page, lead)
    page.goto("/account/")
    teams = page.get_by_role("region", name="Teams")

    for text in ("Recommendations", "research of fra1"):
        lines = teams.get_by_text(text, exact=True).evaluate("""e => {
            const range = document.createRange(); range.selectNodeContents(e);
            return new Set([...range.getClientRects()].map(r => r.top)).size }""")
        assert (text, lines) == (text, 1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert axe(page) == []


PASTE = """([target, text]) => {
  const data = new DataTransfer();
  data.setData("text", text);
  target.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def paste(page, label, text):
    target = cell(page, label)
    target.focus()
    page.evaluate(PASTE, [target.element_handle(), text])


def test_block_of_a_spreadsheet_fills_the_grid_from_the_focused_cell(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    below = page.locator("tr[data-queue] input[data-field=nominal]")
    start = below.nth(0).get_attribute("aria-label")
    after = below.nth(0).evaluate(
        "(one) => one.closest('tr').querySelectorAll('input')[1].getAttribute('aria-label')"
    )
    paste(page, start, "3\t5\r\n4\tmany\r\n")
    expect(cell(page, start)).to_have_value("3")
    expect(cell(page, after)).to_have_value("5")
    expect(page.locator("[data-pasted]")).to_have_text("Pasted 4 cells.")
    expect(page.locator("#faults")).to_contain_text("“many” is not a figure")


def test_block_past_the_end_of_the_grid_loses_nothing_silently(page, lead):
    sign_in(page, lead)
    page.goto(URL)
    last = page.locator("tr[data-queue] input:visible").last.get_attribute("aria-label")
    paste(page, last, "1\t77")
    expect(page.locator("[data-pasted]")).to_contain_text("1 cell found no place")
    expect(page.locator("[data-pasted]")).to_contain_text("77")
