"""The main journeys and every page in Firefox: left out where Debian's ESR is not installed."""

from __future__ import annotations

import pytest
from django.conf import settings

from portal.accounts.models import User
from scheduling.models import QuotaChange
from scheduling.services.worker.cycles import run_cycle
from tests.e2e.conftest import session_of
from tests.e2e.firefox import Firefox
from tests.e2e.test_every_page import CHUNKS, PAST_ITS_CARD, pages
from tests.factories import example_cluster
from tests.portal.web.example import overview_cluster


def enter(firefox: Firefox, name: str) -> None:
    session = session_of(User.objects.get(username=name))
    firefox.cookie(settings.SESSION_COOKIE_NAME, session, "127.0.0.1")


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_page_fits_its_width_in_firefox(firefox, live, chunk):
    cluster = overview_cluster()
    enter(firefox, "admin")
    found = []
    for address in [*pages(cluster)][chunk::CHUNKS]:
        firefox.resize(1280)
        firefox.goto(live + address)
        for wide in (1280, 390):
            firefox.resize(wide)
            if (is_wide := firefox.run("document.documentElement.scrollWidth")) > wide:
                found.append(f"{address} at {wide} px is {is_wide} px wide")
            found += [f"{address} at {wide} px: {one}" for one in firefox.run(PAST_ITS_CARD)]
    assert not found, "\n".join(found)


LONG = (
    "(document.querySelectorAll('.card td.num').forEach((td) => { td.textContent = '65,682'; }), 0)"
)
"""As long as figures of two weeks are: those of the example are short."""


@pytest.mark.parametrize("page", ["reports/utilization", "start-forecasts/", "reports/showback"])
def test_table_of_long_figures_stays_in_its_card_in_firefox(firefox, live, page):
    overview_cluster()
    enter(firefox, "admin")
    firefox.goto(f"{live}/c/fra1/{page}")
    firefox.run(LONG)
    assert firefox.run(PAST_ITS_CARD) == []
    assert firefox.run("document.documentElement.scrollWidth") <= 1280


def test_person_signs_in_by_typing_in_firefox(firefox, live):
    example_cluster()
    user = User.objects.get(username="researcher")
    user.set_password("a-long-pass-phrase")
    user.save()
    firefox.goto(f"{live}/")
    firefox.type("#username", "researcher")
    firefox.type("#password", "a-long-pass-phrase")
    firefox.click("form button[type=submit]")
    firefox.sees("You are researcher")


def test_researcher_submits_and_reads_why_it_waits_in_firefox(firefox, live, served):
    served.queues.filter(name="pretraining").update(stop="hold")
    enter(firefox, "researcher")
    firefox.goto(f"{live}/c/fra1/submit/")
    firefox.type("[name=name]", "probe")
    firefox.run("(document.querySelector('[name=queue]').value = 'pretraining', 0)")
    firefox.type("[name=image]", "registry.example.org/probe:1")
    firefox.type("[name=gpus_per_pod]", "8")
    firefox.sees("weir.dev/queue: pretraining")
    firefox.click("#submit-form .submit-foot button.button-primary")
    firefox.sees("Waiting for the cluster to report it")
    run_cycle(served.pk, trigger="test")
    firefox.sees("Why it waits")


def test_lead_divides_mends_an_error_and_saves_in_firefox(firefox, live):
    example_cluster()
    enter(firefox, "lead")
    firefox.goto(f"{live}/c/fra1/quotas/research/")
    cell = "[aria-label='{}, h100-80gb, nominal']"
    firefox.type(cell.format("language"), "44")
    firefox.type(cell.format("alignment"), "20")
    firefox.sees("research was given 64 and its queues would hold 72.")
    firefox.type(cell.format("vision"), "8")
    firefox.type("#reason", "DPO runs need two whole nodes")
    firefox.sees("Save 3 edits")
    firefox.click("[data-save]")
    firefox.sees("Saved 3 edits")
    assert QuotaChange.objects.get().author.username == "lead"
