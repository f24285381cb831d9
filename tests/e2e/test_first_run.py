"""An admin on an empty installation reaches the first admitted Job, by clicks alone."""

import time

import pytest
from playwright.sync_api import expect

from portal.setup import inviting
from portal.teams.shipped_personas import ensure_personas, ensure_priority_classes
from scheduling import tasks
from scheduling.models import Cluster, Guardrail, GuardrailState, Workload
from scheduling.services.worker.cluster_turns import close_all
from scheduling.services.worker.cycles import run_cycle
from tests.e2e import newcomer, venue
from tests.scheduling.control_plane import ON
from tests.scheduling.kube import eventually

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
    newcomer.come_in(page, f"/set-up/first/{inviting.invite()}/")
    newcomer.paste(page, place.kubeconfig)
    newcomer.price_and_divide(page, place.namespace)
    newcomer.make_team(page)
    run_cycle(Cluster.objects.get().pk)
    newcomer.go_to_enforce(page)
    newcomer.enforce(page)
    eventually(is_guarded)

    newcomer.submit_one(page)
    work = Workload.objects.get
    eventually(lambda: run_cycle(Cluster.objects.get().pk) and work().state != "pending")
    page.goto(f"/c/fra1/w/{work().uid}/")
    expect(page.get_by_text("Running").or_(page.get_by_text("Admitted")).first).to_be_visible()
    assert time.monotonic() - began < WITHIN_S


def is_guarded():
    """The worker's pass over the guardrails, which lets members work in their namespace."""
    cluster = Cluster.objects.get()
    run_cycle(cluster.pk)
    tasks.guard(cluster.pk)
    rails = Guardrail.objects.filter(cluster=cluster)
    return rails.exists() and not rails.exclude(standing=GuardrailState.IN_STEP).exists()
