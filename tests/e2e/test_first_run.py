"""An admin on an empty installation reaches the first admitted Job, by clicks alone."""

import re
import time

import pytest
from playwright.sync_api import expect

from portal.setup import inviting
from portal.teams.shipped import ensure_personas, ensure_priority_classes
from scheduling import tasks
from scheduling.models import Cluster, Guardrail, Standing, Workload
from scheduling.services.worker.cluster_turns import close_all
from scheduling.services.worker.cycles import run_cycle
from tests.e2e import venue
from tests.portal.setup.conftest import PASSWORD
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import eventually

TREE = """
queues:
  - {{name: vision, namespace: {namespace}, access_group: vision-people, nominal: {{l4: 8}}}}
"""
WITHIN_S = 300
"""From the link to a Job that runs."""


@pytest.fixture
def place(request, settings, tmp_path):
    made = venue.real(request.getfixturevalue("kubernetes")) if ON else venue.embedded()
    with made as found:
        yield found
        close_all()


def test_admin_reaches_the_first_admitted_job_within_five_minutes(page, place):
    ensure_priority_classes()
    ensure_personas()
    began = time.monotonic()
    connect(page, place.kubeconfig)
    price_and_divide(page, place.namespace)
    make_team(page)
    run_cycle(Cluster.objects.get().pk)
    page.get_by_role("link", name="Go on").click()
    page.get_by_role("link", name="Go to enforce").click()
    if (left := page.get_by_label(re.compile("outside"))).count():
        left.check()
    page.get_by_role("button", name="Enforce fra1").click()
    eventually(is_guarded)

    submit_one(page)
    work = Workload.objects.get
    eventually(lambda: run_cycle(Cluster.objects.get().pk) and work().state != "pending")
    page.goto(f"/c/fra1/w/{work().uid}/")
    expect(page.get_by_text("Running").or_(page.get_by_text("Admitted")).first).to_be_visible()
    assert time.monotonic() - began < WITHIN_S


def connect(page, kubeconfig):
    """By the link, which makes the admin, and what they paste."""
    page.goto(f"/set-up/first/{inviting.invite()}/")
    page.get_by_label("User name").fill("boss")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in and set Weir up").click()
    page.get_by_label("Name", exact=True).fill("fra1")
    page.get_by_label("Kubeconfig", exact=True).fill(kubeconfig)
    page.get_by_role("button", name="Check and connect").click()
    expect(page.get_by_text("Nothing has been changed.")).to_be_visible()


def price_and_divide(page, namespace):
    page.get_by_role("button", name="Go to classes").click()
    for price in page.get_by_label(re.compile("^price per gpu hour of ")).all():
        price.fill("0.45")
    page.get_by_role("button", name="Keep, go to queues").click()
    page.get_by_label("Queues as YAML").fill(TREE.format(namespace=namespace))
    page.get_by_role("button", name="Apply the file").click()


def make_team(page):
    page.get_by_role("button", name="Make a team for each queue").click()
    page.get_by_label("Team", exact=True).select_option("vision")
    page.get_by_label("User name").fill("boss")
    page.get_by_label("Persona", exact=True).select_option("researcher")
    page.get_by_role("button", name="Give").click()


def is_guarded():
    """The worker's pass over the guardrails, which lets members work in their namespace."""
    cluster = Cluster.objects.get()
    run_cycle(cluster.pk)
    tasks.guard(cluster.pk)
    rails = Guardrail.objects.filter(cluster=cluster)
    return rails.exists() and not rails.exclude(standing=Standing.IN_STEP).exists()


def submit_one(page):
    page.goto("/c/fra1/submit/")
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("Image", exact=True).fill("work:1")
    page.get_by_label("Run-time limit").fill("1")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/w/*/")
