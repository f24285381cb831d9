"""Every page, for each persona: WCAG 2.2 AA in light and dark, no sideways scroll at 360 px, little weight.

The pages come from the URL conf by way of the permission matrix, so a new one is walked as soon as it has
its row there. What axe has seen in a process, it is not shown again: a page whose elements all stood in one
that was audited is no other page to its rules.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from urllib.parse import urlparse

import pytest
from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.notices.models import Kind, Notice
from scheduling.engine.enums import Rule
from scheduling.models import Cluster, Eviction, Workload
from tests.e2e.conftest import OF_COLOUR, axe, sign_in
from tests.factories import make_workload
from tests.portal.test_permission_matrix import ADDRESSES, ROWS
from tests.portal.web.example import overview_cluster
from tests.scheduling.kube import eventually

pytestmark = pytest.mark.long

ARGUMENTS = {
    "cluster": "fra1", "queue": "language", "node": "h100-01", "mode": "paused", "topic": "share",
    "team": "language", "username": "m.okafor", "persona": "researcher", "step": "connect",
}  # fmt: skip
TOPICS = ("waiting", "evicted", "glossary", "keyboard")
UNREADABLE = ("csv", "json", "live", "password", "search", "preview", "sooner", "revert")
"""Parts of names whose answers are no page of their own, or need something posted before."""
FRAGMENTS = ("log", "events")
"""Names of parts that a page fetches when they are opened."""
PERSONAS = ("admin", "lead", "m.okafor")
"""Who is shown most comes first."""
CHUNKS = 5
PAST_ITS_CARD = """[...document.querySelectorAll('.card table')].filter(table => {
    const card = table.closest('.card');
    for (let box = table.parentElement; box !== card.parentElement; box = box.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) return false;
    return table.getBoundingClientRect().right > card.getBoundingClientRect().right + 1;
}).map(table => `a table leaves its card: ${table.className} ${table.innerText.slice(0, 60)}`)"""
"""Tables that are wider than the card they stand in, where nothing lets them scroll; a fault each."""
FIRST_LOAD = 250_000
WITH_CHARTS = 800_000


@pytest.fixture
def cluster(live) -> Cluster:
    """With the longest words there are for why somebody was evicted."""
    made = overview_cluster()
    Eviction.objects.update(allowed_by=Rule.ROUNDED)
    return made


def pages(cluster: Cluster) -> Iterator[str]:
    """Addresses of all pages, with something to show in place of each argument."""
    work = Workload.objects.get(cluster=cluster, name="pt-13b-ctx32k")
    known = {**ARGUMENTS, "uid": work.uid}
    for name, row in ROWS.items():
        area, _, page = name.partition(":")
        is_page = area in {"web", "accounts", "reports"} or name == "mfa_index"
        if row.read is None or not is_page:
            continue
        if page in FRAGMENTS or any(part in page for part in UNREADABLE):
            continue
        wanted = ADDRESSES[name]
        if wanted <= known.keys():
            yield reverse(name, kwargs={argument: known[argument] for argument in wanted})
    yield from (reverse("web:help_page", args=[topic]) for topic in TOPICS)
    yield "/c/fra1/search?q=pre"
    yield "/c/fra1/no-such-page/"


SKELETON = """() => {
  const sign = (one) => one && [
    one.tagName, one.getAttribute("role"), one.getAttribute("type"), [...one.classList].sort(),
    one.getAttributeNames().sort(), one.textContent.trim() === "",
  ].join();
  return [...new Set([...document.querySelectorAll("*")].map(
    (one) => `${sign(one.parentElement)} > ${sign(one)}`
  ))];
}"""
"""Each kind of element below its parent's: tag, role, type, classes, names of attributes, whether it says
something."""
_audited: list[frozenset[str]] = []


def is_new(page) -> bool:
    """False where axe has seen all that stands there, on one page."""
    skeleton = frozenset(page.evaluate(SKELETON))
    known = any(skeleton <= seen for seen in _audited)
    _audited.extend(() if known else (skeleton,))
    return not known


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", PERSONAS)
def test_every_page_meets_aa_and_never_scrolls_sideways(page, cluster, name, chunk):
    sign_in(page, User.objects.get(username=name))
    found = []
    for address in [*pages(cluster)][chunk::CHUNKS]:
        page.set_viewport_size({"width": 1440, "height": 900})
        page.emulate_media(color_scheme="light")
        answer = page.goto(address)
        if answer is None or "html" not in answer.headers.get("content-type", ""):
            continue
        if is_new(page):
            found += [(address, "light", fault) for fault in axe(page)]
            page.emulate_media(color_scheme="dark")
            found += [(address, "dark", fault) for fault in axe(page, OF_COLOUR)]
        for narrow in (1280, 360):
            page.set_viewport_size({"width": narrow, "height": 800})
            if (width := page.evaluate("document.documentElement.scrollWidth")) > narrow:
                found.append((address, f"{narrow} px", f"is {width} px wide"))
            found += [(address, f"{narrow} px", fault) for fault in page.evaluate(PAST_ITS_CARD)]
    assert not found, "\n".join(map(": ".join, found))


def weight(page, address: str) -> int:
    """Bytes of everything that the first load of ``address`` fetches, compressed as a server sends it."""
    bodies: dict[str, bytes] = {}
    page.on(
        "response",
        lambda answer: (
            bodies.setdefault(answer.url, answer.body())
            if answer.ok and is_fetched(answer)
            else None
        ),
    )
    page.goto(address, wait_until="load")
    page.wait_for_timeout(300)
    return sum(len(gzip.compress(body, 6)) for body in bodies.values())


def is_fetched(answer) -> bool:
    """The stream of changes never ends and weighs nothing."""
    return answer.request.resource_type != "eventsource" and not urlparse(answer.url).path.endswith(
        "/live"
    )


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/c/fra1/work/", FIRST_LOAD),
        ("/c/fra1/", FIRST_LOAD),
        ("/c/fra1/workloads/", FIRST_LOAD),
        ("/c/fra1/queues/", FIRST_LOAD),
        ("/c/fra1/quotas/research/", FIRST_LOAD),
        ("/c/fra1/reports/utilization", WITH_CHARTS),
    ],
)
def test_first_load_is_light(page, cluster, path, most):
    sign_in(page, User.objects.get(username="admin"))
    assert weight(page, path) <= most


def test_question_mark_shows_the_keys_and_escape_closes_them(page, cluster):
    sign_in(page, User.objects.get(username="m.okafor"))
    page.goto("/c/fra1/work/")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    assert axe(page) == []
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_question_mark_is_typed_where_somebody_types(page, cluster):
    sign_in(page, User.objects.get(username="m.okafor"))
    page.goto("/c/fra1/work/")
    page.keyboard.press("/")
    page.keyboard.type("why?")
    expect(page.locator("#search")).to_have_value("why?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_search_says_that_it_searches_and_when_it_gets_no_answer(page, cluster):
    sign_in(page, User.objects.get(username="m.okafor"))
    waiting = []

    def hold_back(route):
        waiting.append(route)

    page.route("**/search?q=**", hold_back)
    page.goto("/c/fra1/work/")
    page.keyboard.press("/")
    page.keyboard.type("pre")
    busy = page.locator(".topbar .search-busy")
    expect(busy).to_be_visible()
    # The browser's question reaches this process a moment after the page shows it.
    eventually(
        lambda: page.wait_for_timeout(20) or (waiting and "q=pre" in waiting[-1].request.url)
    )
    waiting[-1].abort()
    expect(page.locator("#search-results")).to_contain_text("The search got no answer")
    expect(busy).to_be_hidden()


def test_rows_of_a_list_are_dense_and_names_whole(page, cluster):
    """Fifty rows in no more than 2,500 px; each name on one line, long ones cut at the end."""
    queue = cluster.queues.get(name="vision")
    first = Workload.objects.filter(queue=queue).first()
    for i in range(60):
        name = f"an-evaluation-of-checkpoints-with-quite-a-long-name-{i}"
        values = {
            "uid": f"dense-{i}",
            "name": name,
            "state": "pending",
            "reason": "above_fair_share",
        }
        sentence = "research/vision holds 8 h100-80gb; this gang needs 8 at once on one node of it."
        Workload.objects.create(
            cluster=cluster, queue=queue, namespace="vision", user="a.novak", sentence=sentence,
            gpu_classes=["h100-80gb"], submitted_at=first.submitted_at, **values,
        )  # fmt: skip
    sign_in(page, User.objects.get(username="admin"))
    page.goto("/c/fra1/workloads/?state=waiting")
    assert page.locator(".work tbody tr").count() == 50
    assert page.locator(".work").bounding_box()["height"] <= 2500
    lines = page.locator(".work tbody .name").evaluate_all(
        "names => names.map((name) => Math.round(name.getBoundingClientRect().height))"
    )
    assert set(lines) == {20}


def test_long_table_folds_on_a_narrow_screen_and_opens_for_good(page, cluster):
    queue = cluster.queues.get(name="vision")
    for i in range(30):
        make_workload(queue, name=f"many-{i}", user="admin", state="pending")
    sign_in(page, User.objects.get(username="admin"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/c/fra1/workloads/?state=waiting")
    rows = page.locator(".cards-narrow tbody tr:visible")
    every = page.locator(".cards-narrow tbody tr").count()
    assert rows.count() < every
    assert page.evaluate("document.documentElement.scrollHeight") <= 3000
    page.get_by_role("button", name=f"All {every}", exact=True).click()
    assert rows.count() == every
    cluster.touch()
    page.wait_for_timeout(1500)
    assert rows.count() == every


def test_many_notices_fold_on_a_narrow_screen_by_thing_and_inside_each(page, cluster):
    admin, now = User.objects.get(username="admin"), timezone.now()
    for i in range(33):
        Notice.objects.create(
            user=admin, cluster=cluster, kind=Kind.EVICTED, about=f"work-{min(i, 20)}", source=f"{i}",
            title=f"Work {i} was evicted.", lines=[["Why", "Its queue held more."]], at=now, due_at=now,
        )  # fmt: skip
    sign_in(page, admin)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/notices/")
    assert page.evaluate("document.documentElement.scrollHeight") <= PHONE_PX
    page.get_by_role("button", name="All 21", exact=True).click()
    assert page.locator(".told:visible").count() == 20 + 3
    page.get_by_role("button", name="All 13", exact=True).click()
    assert page.locator(".told:visible").count() == 33


LONG_ON_A_PHONE = {"/help/waiting/": "each reason is led to by name, and read where it stands"}
"""Address -> why what stands there can't fold. It gets only shorter."""
PHONE_PX = 3000


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_page_on_a_phone_is_no_longer_than_four_screens_unless_it_says_why(page, cluster, chunk):
    sign_in(page, User.objects.get(username="admin"))
    page.set_viewport_size({"width": 390, "height": 844})
    uid = Workload.objects.get(cluster=cluster, name="pt-13b-ctx32k").uid
    long, addresses = {}, [*pages(cluster)][chunk::CHUNKS]
    for address in addresses:
        answer = page.goto(address, wait_until="load")
        if answer is None or "html" not in answer.headers.get("content-type", ""):
            continue
        height = page.evaluate("document.documentElement.scrollHeight")
        if height > PHONE_PX:
            long[address.replace(uid, "UID")] = height
    here = {address.replace(uid, "UID") for address in addresses}
    assert long.keys() == LONG_ON_A_PHONE.keys() & here, long


def test_late_cards_of_a_long_page_show_their_heads_on_a_narrow_screen(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/c/fra1/policy/")
    folded = page.locator("section.card[data-folded]")
    expect(folded.first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") <= 3000
    fields, count = folded.first.locator("tbody tr"), folded.count()
    expect(fields.first).to_be_hidden()
    folded.first.get_by_role("button", name=re.compile("^Show: ")).click()
    expect(folded).to_have_count(count - 1)
    expect(page.get_by_role("button", name="Save the policy")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 844})
    for card in folded.all():
        expect(card.locator("tbody tr").first).to_be_visible()


def test_table_of_a_wide_screen_is_whole(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    page.goto("/audit/")
    expect(page.get_by_role("button", name=re.compile("^All [0-9]+$"))).to_have_count(0)


def test_reference_of_the_api_is_dark_where_its_reader_is_and_leads_back(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    page.emulate_media(color_scheme="dark")
    page.goto("/api/v1/docs")
    expect(page.locator(".opblock-summary-description").first).not_to_be_empty()
    assert page.evaluate("document.documentElement.classList.contains('dark-mode')")
    page.get_by_role("link", name="Back to Weir").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_head_sorts_by_keyboard_and_says_how(page, cluster):
    sign_in(page, User.objects.get(username="admin"))
    page.goto("/c/fra1/workloads/?state=waiting&queue=products")
    head = page.get_by_role("columnheader", name="GPUs")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert re.search(r"state=waiting&queue=products&sort=-gpus$", page.url)


def test_old_plan_is_said_on_the_page_itself(page, cluster):
    Cluster.objects.filter(pk=cluster.pk).update(cycle_interval_s=0.1)
    sign_in(page, User.objects.get(username="m.okafor"))
    page.goto("/c/fra1/work/")
    note = page.locator("[data-stale-note]")
    expect(note).to_contain_text("This page is as of then")
    assert axe(page) == []


def test_chart_library_is_loaded_only_where_charts_are():
    templates = settings.BASE_DIR / "templates"
    parts = {templates / "components" / f"charts_{part}.html" for part in ("styles", "scripts")}
    texts = {path: path.read_text() for path in templates.rglob("*.html")}
    loading = {path for path, text in texts.items() if "components/charts_" in text}
    charts = (
        "reports/base.html",
        "web/operations/cluster.html",
        "web/alerts/alerts.html",
        "web/lab/capacity.html",
    )
    assert {path for path, text in texts.items() if "plotly" in text} == parts
    assert loading == {templates / name for name in charts}
