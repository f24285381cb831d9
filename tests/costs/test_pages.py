"""No page of the bench asks the database more than so many times, be its reader the first one."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.web.frame.revision_cache import remembered
from tests.costs.counting import counted
from tests.costs.scenario import busy_cluster
from workshop.benches.worker.large import Person
from workshop.benches.worker.pages import MOST_QUERIES, PAGES

PEOPLE = {"researcher": "m.okafor", "team lead": "lead", "admin": "admin"}
VISITS = [(persona, page) for persona, pages in PAGES.items() for page in pages]


@pytest.mark.parametrize(("persona", "page"), VISITS)
def test_first_visit_of_a_page_asks_at_most_so_much(
    db: None, client: Client, settings: Any, persona: str, page: str
) -> None:
    settings.WEIR_REMEMBERED_S = 5.0
    cluster, user = busy_cluster(50), User.objects.get(username=PEOPLE[persona])
    work = cluster.workloads.filter(user="m.okafor", queue__isnull=False).earliest("pk")
    person = Person(persona, user.username, "", "", "research", work.queue.name, work.uid)
    client.force_login(user)
    remembered._slots.clear()

    with counted() as counts:
        answer = client.get(
            f"/c/{cluster.name}/{person.address(page.replace('YEAR', '2026-01-01'))}"
        )

    assert answer.status_code == 200
    assert counts["queries"] <= MOST_QUERIES
