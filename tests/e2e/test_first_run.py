"""An admin on an empty installation reaches the first admitted Job, by clicks alone."""

import pytest
from playwright.sync_api import expect

from portal.setup import inviting
from portal.teams.shipped import ensure_personas, ensure_priority_classes
from scheduling.cluster.connection.client import Client
from scheduling.models import Cluster, Workload
from scheduling.services.worker.cycles import run_cycle
from scheduling.services.worker.held import close_all
from scheduling.testbed.server import EmbeddedServer
from tests.portal.setup.test_first_run import PASSWORD, kubeconfig, node
from tests.scheduling.kube import eventually

TREE = "queues:\n  - {name: vision, namespace: vision, nominal: {l4: 8}}\n"


@pytest.fixture
def server(settings, tmp_path):
    settings.WEIR_CREDENTIALS = tmp_path
    with EmbeddedServer(port=0) as running:
        client = Client.connect(Cluster(name="x", api_url=running.url))
        client.create("/api/v1/nodes", node("n1", "True"))
        meta = {"name": "vision"}
        client.create(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        )
        client.close()
        yield running
        close_all()


def test_admin_reaches_the_first_admitted_job(page, server):
    ensure_priority_classes()
    ensure_personas()
    page.goto(f"/set-up/first/{inviting.invite()}/")
    page.get_by_label("User name").fill("boss")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in and set Weir up").click()

    page.get_by_label("Name", exact=True).fill("fra1")
    page.get_by_label("Kubeconfig", exact=True).fill(kubeconfig(server.url))
    page.get_by_role("button", name="Check and connect").click()
    expect(page.get_by_text("Nothing has been changed.")).to_be_visible()
    page.get_by_role("button", name="Go to classes").click()
    page.get_by_label("price per gpu hour of l4").fill("0.45")
    page.get_by_role("button", name="Keep, go to queues").click()
    page.get_by_label("Queues as YAML").fill(TREE)
    page.get_by_role("button", name="Apply the file").click()

    page.get_by_role("button", name="Make a team for each queue").click()
    page.get_by_label("Team", exact=True).select_option("vision")
    page.get_by_label("User name").fill("boss")
    page.get_by_label("Persona", exact=True).select_option("researcher")
    page.get_by_role("button", name="Give").click()
    run_cycle(Cluster.objects.get().pk)
    page.get_by_role("link", name="Go on").click()
    page.get_by_role("link", name="Go to enforce").click()
    page.get_by_role("button", name="Enforce fra1").click()

    submit_one(page)
    work = Workload.objects.get
    eventually(lambda: run_cycle(Cluster.objects.get().pk) and work().state != "pending")
    page.goto(f"/c/fra1/w/{work().uid}/")
    expect(page.get_by_text("Running").or_(page.get_by_text("Admitted")).first).to_be_visible()


def submit_one(page):
    page.goto("/c/fra1/submit/")
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("Image", exact=True).fill("work:1")
    page.get_by_label("Run-time limit").fill("1")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/w/*/")
