"""A contested eviction: from the workload's history to the cycle, who could have left, and the file."""

import pytest

from portal.accounts.models import User
from scheduling.models import Cycle, Decision, Eviction, Transition, Workload
from tests.cycles import record, snapshot_of
from tests.e2e.conftest import axe, sign_in
from tests.factories import NOW
from tests.portal.web.example import overview_cluster

RUNS = ("pretraining-run-1", "pretraining-run-2", "pretraining-run-3", "pt-13b-ctx32k")


@pytest.fixture
def passed(live):
    cluster = overview_cluster()
    cycle = Cycle.objects.get()
    victim = Workload.objects.get(name="pt-13b-ctx32k")
    Cycle.objects.update(evicted=1, pending=3, running=14)
    space = dict(Workload.objects.filter(name__in=RUNS).values_list("name", "namespace"))
    runs = tuple(f"{space[name]}/{name}" for name in RUNS)
    record(cycle, snapshot_of(
        NOW, "h100-80gb", borrower="pretraining", owner="alignment", runs=runs, waits="ns/align-rm-9"
    ))  # fmt: skip
    Eviction.objects.update(cycle=cycle)
    said = "pretraining held 32 h100-80gb, 16 above its fair share of 16; it keeps 24."
    h100 = cluster.gpu_classes.get(name="h100-80gb")
    Decision.objects.create(
        cycle=cycle, workload=victim, action="evict", reason="reclaimed", sentence=said, sealed={},
        numbers={"lost_gpu_s": 27000.0}, gpu_class=h100,
    )  # fmt: skip
    requeued = Transition.objects.filter(workload=victim, to_state="requeued").get().at
    earlier = Cycle.objects.create(cluster=cluster, number=48100, at=requeued)
    for waiting in Workload.objects.filter(queue=victim.queue, state__in=["pending", "requeued"]):
        Decision.objects.create(
            cycle=earlier if waiting == victim else cycle, workload=waiting, action="wait",
            reason=waiting.reason, sentence=waiting.sentence, sealed={},
        )  # fmt: skip
    return cluster


def settled(page):
    page.locator("#leavers li").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contested_eviction_is_read_planned_again_and_downloaded(live, page, passed, scheme):
    sign_in(page, User.objects.get(username="admin"))
    page.emulate_media(color_scheme=scheme)
    victim = Workload.objects.get(name="pt-13b-ctx32k")
    page.goto(f"/c/fra1/w/{victim.uid}/")
    assert "waits" in page.locator("#history-head + *, .history").last.inner_text().lower()
    assert axe(page) == []
    page.get_by_role("link", name="cycle 48,213", exact=True).last.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/cycles/48213/")
    settled(page)
    assert "Chosen" in page.locator("#leavers").inner_text()
    assert axe(page) == []
    with page.expect_download() as download:
        page.get_by_role("link", name="Download snapshot").click()
    assert download.value.suggested_filename == "cycle-48213.json"


def test_cycle_fits_a_narrow_page(live, page, passed):
    sign_in(page, User.objects.get(username="admin"))
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/c/fra1/cycles/48213/")
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert axe(page) == []
