"""A lead offers idle quota, another asks for it, the lender sees the plan and consents, the next cycle
admits; then it is recalled. Over a real API server and the engine's cycles."""

import re

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.teams.submission import submit
from scheduling.models import Cluster, Quota, Workload
from scheduling.services import events
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker.cycles import run_cycle
from tests.e2e.conftest import axe, sign_in
from tests.e2e.test_requests import JOB
from tests.factories import example_cluster
from tests.portal.kubernetes import serving
from tests.scheduling.kube import eventually
from workshop.demo.organisation import H100


@pytest.fixture
def cluster(live):
    """Alignment may hold nothing of h100, and one job of it waits."""
    cluster = example_cluster()
    Workload.objects.all().delete()
    Cluster.objects.update(clock_real=None, clock_start=None)
    cluster.refresh_from_db()
    mine = Quota.objects.filter(queue__name="alignment")
    mine.update(nominal_gpus=0, borrowing_limit_gpus=0)
    with serving(cluster):
        submit(User.objects.get(username="s.marchetti"), cluster, JOB, even_if_never=True)
        run_cycle(cluster.pk, trigger="test")
        yield cluster
        workers.close_all()


def test_loan_is_offered_asked_for_consented_to_admitted_and_recalled(page, cluster):
    lead, admin = (User.objects.get(username=name) for name in ("lead", "admin"))
    sign_in(page, lead)
    page.goto("/c/fra1/loans/")
    page.get_by_role("link", name="Offer idle quota").click()
    page.get_by_label("Lender", exact=True).select_option("vision")
    page.get_by_label("GPU class", exact=True).select_option(H100)
    page.get_by_label("GPUs", exact=True).fill("8")
    page.get_by_label("Until", exact=True).fill("2030-12-18T18:00")
    page.get_by_role("button", name="Offer", exact=True).click()
    expect(page.get_by_text("Offered. A lead of a queue here may ask for it.")).to_be_visible()

    sign_in(page, admin)
    page.goto("/c/fra1/loans/")
    page.goto("/c/fra1/loans/new/?kind=ask&offer=1&borrower=alignment")
    page.get_by_label("Borrower", exact=True).select_option("alignment")
    page.get_by_label("Until", exact=True).fill("2030-12-01T18:00")
    page.get_by_label("Why", exact=True).fill("DPO runs need a whole node.")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("waits for consent.")).to_be_visible()
    events.deliver_due()

    sign_in(page, lead)
    page.goto("/notices/")
    page.get_by_role("link", name="Open L-").first.click()
    # The first plan of a process loads the engine.
    expect(page.get_by_role("heading", name="If you consent")).to_be_visible(timeout=60_000)
    expect(page.locator(".effect").first).to_contain_text("dpo")
    assert axe(page) == []
    page.get_by_role("button", name="Lend").click()
    expect(page.get_by_text("The loan runs, with the next cycle.")).to_be_visible()
    eventually(
        lambda: run_cycle(cluster.pk, trigger="test") and Workload.objects.get().state != "pending"
    )

    page.goto("/c/fra1/loans/")
    expect(page.locator(".loan-table")).to_contain_text("alignment has")
    assert axe(page) == []
    page.get_by_role("link", name=re.compile("^L-")).first.click()
    expect(page.get_by_text("It keeps what it holds as long as that is free")).to_be_visible()
    page.get_by_role("button", name="Recall 8").click()
    expect(page.get_by_role("button", name="Undo the recall")).to_be_visible()
