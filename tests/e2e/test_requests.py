"""A researcher asks, the lead sees the plan and forwards, an approver approves, the next cycle admits, and
the researcher is told; over a real API server and the engine's cycles."""

import pytest
from playwright.sync_api import expect

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from portal.teams.submission import submit
from scheduling.models import Cluster, Quota, Workload
from scheduling.services import events
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.e2e.conftest import axe, sign_in
from tests.factories import example_cluster, make_user
from tests.portal.kubernetes import serving
from tests.scheduling.kube import eventually
from workshop.demo.organisation import H100

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "dpo",
        "namespace": "alignment",
        "labels": {"weir.dev/queue": "alignment"},
    },
    "spec": {
        "parallelism": 1,
        "completions": 1,
        "activeDeadlineSeconds": 3600,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example.org/dpo:1",
                        "resources": {"limits": {"nvidia.com/gpu": "8"}},
                    }
                ],
            }
        },
    },
}


@pytest.fixture
def cluster(live):
    """Alignment may hold nothing of h100 before it asks, and one job of it waits."""
    cluster = example_cluster()
    Workload.objects.all().delete()
    Cluster.objects.update(clock_real=None, clock_start=None)
    cluster.refresh_from_db()
    approver = make_user("approver")
    Membership.objects.create(
        user=approver,
        team=Team.objects.get(queue__parent=None),
        persona=Persona.objects.get(name="approver"),
    )
    mine = Quota.objects.filter(queue__name="alignment")
    mine.update(nominal_gpus=0, borrowing_limit_gpus=0)
    with serving(cluster):
        asker = User.objects.get(username="s.marchetti")
        submit(asker, cluster, JOB, even_if_never=True)
        run_cycle(cluster.pk, trigger="test")
        yield cluster
        workers.close_all()


def test_request_is_asked_forwarded_approved_admitted_and_told(page, cluster):
    assert Workload.objects.get().state == "pending"
    sign_in(page, User.objects.get(username="s.marchetti"))
    page.goto("/c/fra1/requests/")
    page.get_by_role("link", name="Ask for quota").first.click()
    page.get_by_label("Queue", exact=True).select_option("alignment")
    page.get_by_label("GPU class", exact=True).select_option(H100)
    page.get_by_label("More GPUs", exact=True).fill("8")
    page.get_by_label("Why", exact=True).fill("DPO runs need a whole node.")
    # The first plan of a process loads the engine.
    expect(page.locator("#outcome")).to_contain_text(
        "Approved now, 1 workload starts", timeout=60_000
    )
    page.get_by_role("button", name="Submit request").click()
    expect(page.get_by_text("is with the lead")).to_be_visible()
    address = page.url
    events.deliver_due()

    sign_in(page, User.objects.get(username="lead"))
    page.goto("/notices/")
    page.get_by_role("link", name="Open R-").first.click()
    expect(page.get_by_role("heading", name="If you approve")).to_be_visible()
    expect(page.locator(".effect").first).to_contain_text("dpo")
    page.get_by_label("Taken from", exact=True).select_option("vision")
    page.get_by_label("Reason", exact=False).first.fill("Vision is idle this week.")
    page.get_by_role("button", name="Forward to an approver").click()
    expect(page.get_by_text("Forwarded to the approvers.")).to_be_visible()
    expect(page.get_by_text("You forwarded it.")).to_be_visible()

    sign_in(page, User.objects.get(username="approver"))
    page.goto(address)
    expect(page.get_by_text("Four eyes hold.")).to_be_visible()
    expect(page.get_by_role("row", name="vision")).to_contain_text("16 → 8")
    page.get_by_label("Reason", exact=False).first.fill("December release.")
    page.get_by_role("button", name="Approve 8").click()
    expect(page.get_by_text("Approved. The next cycle sees it.")).to_be_visible()
    assert axe(page) == []
    events.deliver_due()

    eventually(
        lambda: run_cycle(cluster.pk, trigger="test") and Workload.objects.get().state != "pending"
    )
    sign_in(page, User.objects.get(username="s.marchetti"))
    page.goto("/c/fra1/work/")
    expect(page.locator(".bell-count")).to_contain_text("1")
    page.locator(".bell").click()
    expect(page.get_by_text("was approved by approver.")).to_be_visible()
    expect(page.get_by_text("December release.")).to_be_visible()
