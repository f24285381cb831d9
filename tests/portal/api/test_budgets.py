"""Budgets by REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.reports.models import Budget
from tests.portal.reports.conftest import Small

pytestmark = pytest.mark.django_db
SENT = {"queue": "vision", "amount": "5000.00", "begin": "2026-11-01", "end": "2026-11-30"}


@pytest.fixture
def small(db: None) -> Small:
    return Small()


def call(small: Small, person: User, method: str, rest: str = "", body: Any = None) -> Any:
    client = Client()
    client.force_login(person)
    at = f"/api/v1/clusters/{small.cluster.name}/budgets{rest}"
    return getattr(client, method)(at, body, content_type="application/json")


def test_budget_that_is_set_is_listed_as_it_was_sent(small: Small) -> None:
    made = call(small, small.lead, "post", body=SENT)
    listed = call(small, small.lead, "get").json()["results"]

    assert made.status_code == 201
    assert listed == [{"id": made.json()["id"], **SENT}]


def test_same_begin_changes_the_amount(small: Small) -> None:
    call(small, small.lead, "post", body=SENT)
    call(small, small.lead, "post", body={**SENT, "amount": "7.00"})

    assert [str(one.amount) for one in Budget.objects.all()] == ["7.00"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"queue": "no-such"}, "queue"),
        ({"amount": "0"}, "amount"),
        ({"amount": "much"}, "amount"),
        ({"end": "2026-10-01"}, "end"),
        ({"begin": "soon"}, "begin"),
    ],
)
def test_wrong_budget_is_refused_at_its_field(small: Small, change: Any, field: str) -> None:
    answer = call(small, small.lead, "post", body={**SENT, **change})

    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


def test_dropped_budget_is_gone(small: Small) -> None:
    made = call(small, small.lead, "post", body=SENT).json()

    assert call(small, small.lead, "delete", f"/{made['id']}").status_code == 204
    assert not Budget.objects.exists()
