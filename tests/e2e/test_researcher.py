"""A researcher submits, sees why it waits, and cancels; over a real API server and the engine's cycles."""

import pytest
from playwright.sync_api import expect

from portal.accounts.models import Persona, User
from scheduling.models import Workload
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.e2e.conftest import axe, sign_in
from tests.factories import example_cluster, make_workload


@pytest.fixture
def cluster(served):
    return served


@pytest.fixture
def researcher(page, cluster):
    sign_in(page, User.objects.get(username="researcher"))
    return page


def fill(page):
    page.goto("/c/fra1/submit/")
    page.get_by_label("Name", exact=True).fill("probe")
    page.get_by_label("Queue", exact=True).select_option("pretraining")
    page.get_by_label("Image", exact=True).fill("registry.example.org/probe:1")
    page.get_by_label("GPUs per pod", exact=True).fill("8")


def test_submit_see_it_wait_and_cancel(researcher, cluster):
    cluster.queues.filter(name="pretraining").update(stop="hold")
    fill(researcher)
    expect(researcher.locator("#manifest")).to_contain_text("weir.dev/queue: pretraining")
    researcher.get_by_role("button", name="Submit", exact=True).click()
    expect(researcher.get_by_text("Waiting for the cluster to report it")).to_be_visible()

    run_cycle(cluster.pk, trigger="test")
    expect(researcher.get_by_role("heading", name="Why it waits")).to_be_visible()
    expect(researcher.locator(".history")).to_contain_text("Submitted")

    researcher.goto("/c/fra1/work/")
    researcher.get_by_role("button", name="Hold probe").click()
    researcher.get_by_role("link", name="Cancel probe").click()
    expect(researcher.locator(".effects")).to_contain_text("nothing of it runs")
    researcher.get_by_role("button", name="Cancel it").click()
    expect(researcher.get_by_text("is being cancelled")).to_be_visible()

    researcher.evaluate("window.stays = true")
    worker = workers.held_of(cluster, on_change=lambda: None)
    worker.link.mirror.wait_synced(5)
    for _ in range(50):
        run_cycle(cluster.pk, trigger="test")
        if Workload.objects.get().state == "finished":
            break
        researcher.wait_for_timeout(100)
    expect(researcher.locator(".head-badges")).to_contain_text("Cancelled")


def test_gpu_classes_are_ordered_added_and_left_out_by_keyboard(researcher, cluster):
    fill(researcher)
    press = lambda name: researcher.get_by_role("button", name=name, exact=True).press("Enter")  # noqa: E731
    expect(researcher.get_by_label("2nd choice")).to_be_hidden()
    press("Add a class")
    researcher.get_by_label("2nd choice").select_option("a100-40gb")
    press("Move down h100-80gb")
    expect(researcher.locator("#manifest")).to_contain_text("a100-40gb,h100-80gb")
    expect(researcher.get_by_role("button", name="Move up h100-80gb")).to_be_focused()
    assert axe(researcher) == []
    press("Leave out a100-40gb")
    expect(researcher.locator("#manifest")).not_to_contain_text("a100-40gb")
    expect(researcher.get_by_label("1st choice")).to_have_value("h100-80gb")


def test_array_of_the_form_becomes_its_members(researcher, cluster):
    fill(researcher)
    researcher.get_by_label("GPUs per pod", exact=True).fill("1")
    researcher.locator("#turn-fields summary").click()
    researcher.get_by_label("Members of an array", exact=True).fill("3")
    researcher.get_by_label("Of them at once", exact=True).fill("2")
    researcher.get_by_role("button", name="Submit", exact=True).click()
    expect(researcher.get_by_text("3 members of the array are submitted")).to_be_visible()

    run_cycle(cluster.pk, trigger="test")
    members = Workload.objects.order_by("name")
    assert [work.turn["at_once"] for work in members] == [2, 2, 2]
    assert len({work.turn.get("index", 0) for work in members}) == 3


def test_interactive_session_of_the_form_is_one_until_its_limit(researcher, cluster):
    fill(researcher)
    researcher.get_by_label("Kind", exact=True).select_option("interactive")
    researcher.get_by_label("Priority class", exact=True).select_option("interactive")
    researcher.get_by_label("GPUs per pod", exact=True).fill("1")
    researcher.get_by_label("Run-time limit", exact=True).fill("2 h")
    researcher.get_by_role("button", name="Submit", exact=True).click()
    expect(researcher.get_by_text("Waiting for the cluster to report it")).to_be_visible()

    run_cycle(cluster.pk, trigger="test")
    work = Workload.objects.get()
    assert (work.type, work.run_time_limit_s) == ("interactive", 7200)


def test_what_would_happen_is_said_while_one_types_and_takes_nothing_from_who_does(researcher):
    fill(researcher)
    rows = researcher.locator(".fits tbody tr")
    # The first plan of a process loads the engine.
    expect(rows.first).to_contain_text("Starts now", timeout=60_000)
    expect(researcher.locator("#lead")).to_contain_text("starts now on h100-80gb")
    name = researcher.get_by_label("Name", exact=True)
    name.fill("typed while ")
    researcher.get_by_label("GPUs per pod", exact=True).fill("16")
    name.focus()
    name.press_sequentially("asked")
    expect(rows.first).to_contain_text("Never fits")
    expect(rows.first).to_contain_text("never take 1 member of 16 GPUs")
    expect(name).to_be_focused()
    expect(name).to_have_value("typed while asked")


def test_what_never_fits_is_submitted_once_that_is_confirmed(researcher):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=None)
    fill(researcher)
    researcher.get_by_label("GPUs per pod", exact=True).fill("16")
    researcher.get_by_role("button", name="Submit", exact=True).click()
    expect(researcher.locator(".confirm-never")).to_contain_text("can never start")
    assert axe(researcher) == []
    researcher.get_by_label("Submit it all the same").check()
    researcher.get_by_role("button", name="Submit", exact=True).click()
    expect(researcher.get_by_text("Waiting for the cluster to report it")).to_be_visible()


def test_template_is_kept_and_used(researcher):
    fill(researcher)
    researcher.get_by_label("Keep as template").fill("eight")
    researcher.get_by_role("button", name="Save template").click()
    expect(researcher.get_by_text("from eight")).to_be_visible(timeout=30_000)
    researcher.goto("/c/fra1/submit/")
    expect(researcher.get_by_label("GPUs per pod", exact=True)).to_have_value("1")
    researcher.get_by_label("Template", exact=True).select_option("eight")
    researcher.get_by_role("button", name="Use", exact=True).click()
    expect(researcher.get_by_label("GPUs per pod", exact=True)).to_have_value("8")
    assert axe(researcher) == []


def test_check_needs_no_script(browser, live, cluster):
    context = browser.new_context(base_url=live, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, User.objects.get(username="researcher"))
    fill(page)
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".fits tbody tr").first).to_contain_text("Starts now")
    expect(page.get_by_label("GPUs per pod", exact=True)).to_have_value("8")
    context.close()


def test_fault_stands_at_its_field_and_what_was_typed_stays(researcher):
    fill(researcher)
    researcher.get_by_label("GPUs per pod", exact=True).fill("64")
    researcher.get_by_role("button", name="Submit", exact=True).click()
    field = researcher.get_by_label("GPUs per pod", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("64")
    expect(researcher.locator("#id_gpus_per_pod_error")).to_contain_text("fewer")
    expect(researcher.get_by_label("Name", exact=True)).to_have_value("probe")


@pytest.mark.parametrize("path", ["work/", "workloads/", "submit/", "submit/?as=manifest"])
def test_page_meets_aa_and_never_scrolls_sideways(researcher, path):
    researcher.goto(f"/c/fra1/{path}")
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "light")):
        researcher.set_viewport_size({"width": width, "height": 900})
        researcher.emulate_media(color_scheme=scheme)
        assert axe(researcher) == [], (width, scheme)
        assert researcher.evaluate("document.documentElement.scrollWidth") == width


def test_workload_page_meets_aa_and_never_scrolls_sideways(page, live):
    cluster = example_cluster()
    sign_in(page, User.objects.get(username="m.okafor"))
    for name in ("pt-13b-ctx32k", "pretraining-run-1"):
        work = Workload.objects.get(cluster=cluster, name=name)
        page.goto(f"/c/fra1/w/{work.uid}/")
        for width, scheme in ((1440, "light"), (1440, "dark"), (390, "light")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert axe(page) == [], (name, width, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_answer_that_somebody_waits_for_comes_though_the_page_changes_meanwhile(page, live):
    cluster = example_cluster()
    sign_in(page, User.objects.get(username="m.okafor"))
    work = Workload.objects.get(cluster=cluster, name="pt-13b-ctx32k")
    asked = []

    def hold_back(route):
        asked.append(route)

    page.route("**/sooner/", hold_back)
    page.goto(f"/c/fra1/w/{work.uid}/")
    Workload.objects.filter(pk=work.pk).update(sentence="Another sentence now.")
    cluster.touch()
    expect(page.get_by_text("Another sentence now.")).to_be_visible()
    asked[0].fulfill(body="<p>With fewer GPUs.</p>", content_type="text/html")
    expect(page.locator("#sooner")).to_contain_text("With fewer GPUs.")


def test_two_are_marked_and_cancelled_after_one_question(researcher, cluster):
    cluster.queues.filter(name="pretraining").update(stop="hold")
    for name in ("probe-a", "probe-b", "probe-c"):
        fill(researcher)
        researcher.get_by_label("Name", exact=True).fill(name)
        researcher.get_by_role("button", name="Submit", exact=True).click()
        expect(researcher.get_by_text("Waiting for the cluster to report it")).to_be_visible()
    run_cycle(cluster.pk, trigger="test")
    # It reloads itself once the cluster has reported it.
    expect(researcher.get_by_role("heading", name="Why it waits")).to_be_visible()

    researcher.goto("/c/fra1/work/list/")
    count = researcher.locator("#marked-count")
    researcher.get_by_label("All shown that you may change").press("Space")
    expect(count).to_have_text("3 of 3 marked")
    researcher.get_by_label("Mark probe-c").press("Space")
    expect(count).to_have_text("2 of 3 marked")
    assert axe(researcher) == []
    researcher.get_by_role("button", name="Cancel…").click()
    expect(researcher.locator(".effects")).to_contain_text("2 workloads that wait leave the queue")
    assert axe(researcher) == []
    researcher.get_by_role("button", name="Cancel all 2").click()
    expect(researcher.get_by_text("2 workloads are being cancelled")).to_be_visible()

    worker = workers.held_of(cluster, on_change=lambda: None)
    worker.link.mirror.wait_synced(5)
    for _ in range(50):
        run_cycle(cluster.pk, trigger="test")
        if Workload.objects.filter(state="finished").count() == 2:
            break
        researcher.wait_for_timeout(100)
    assert Workload.objects.exclude(state="finished").get().name == "probe-c"


def test_line_for_kubectl_is_copied(page, cluster):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    queue = cluster.queues.get(name="pretraining")
    work = make_workload(queue, user="m.okafor", namespace="pretraining")
    sign_in(page, User.objects.get(username="m.okafor"))
    page.goto(f"/c/fra1/w/{work.uid}/")
    page.get_by_role("button", name="Copy the line: Describe").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#command-1").text_content()
    assert copied.startswith(f"kubectl -n {work.namespace} describe ")
