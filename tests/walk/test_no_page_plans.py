"""No page and no call that reads has the engine plan, or the cluster read, before it answers: a plan is asked
of a worker, or kept."""

from __future__ import annotations

import pytest

from portal.plans import asking, kinds
from portal.plans.models import AskedPlan
from portal.web.cycles import views as cycles
from scheduling.engine import planner
from scheduling.services.snapshot import build
from tests.portal.test_permission_matrix import ADDRESSES
from tests.security.test_sealed_names import ADDRESSES as SEALED
from tests.walk.asking import ask
from tests.walk.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.long]
LOOKERS = ("admin", "chief", "lead")
PLANS = {
    "api:request_preview": "A program has nothing to show meanwhile; a kept plan comes first.",
    "api:workload_sooner": "The same.",
    "web:cycle_candidates": "A fragment about what is past, planned once for all who open its cycle.",
}
"""Address -> why it may plan."""
ASKS = {
    "web:request": kinds.REQUEST,
    "web:loan": kinds.LOAN,
    "web:consolidation": kinds.NODES,
    "web:sooner": kinds.SOONER,
    "web:quota_revert": kinds.REVERT,
}
"""Address -> the kind of plan that it asks for."""


@pytest.fixture
def planned(monkeypatch, remembering):
    """What read the cluster for a plan, and questions that a worker would take."""
    planned: list[str] = []

    def refuse(*args, **kwargs):
        planned.append("planned")
        raise OSError

    monkeypatch.setattr(build, "live", refuse)
    monkeypatch.setattr(build, "live_under", refuse)
    monkeypatch.setattr(planner, "plan_world", refuse)
    monkeypatch.setattr(cycles, "searches_of", refuse)
    monkeypatch.setattr(asking, "_ask", lambda asked_id: None)
    return planned


def looked_at(world: World, name: str):
    """Everybody whom it may be open to, with all of its queries."""
    queries = {query for query in SEALED[name].queries if query} if name in SEALED else set()
    url = world.url(name)
    for who in LOOKERS:
        yield ask(world, who, "GET", name, url)
        for query in sorted(queries):
            yield ask(world, who, "GET", name, url.partition("?")[0] + query)


@pytest.mark.parametrize("name", [name for name in ADDRESSES if name not in PLANS])
def test_the_address_answers_without_a_plan(world, planned, name):
    answers = list(looked_at(world, name))

    assert planned == [], [str(one) for one in answers]


@pytest.mark.parametrize("name", ASKS)
def test_the_address_asks_a_worker_for_its_plan(world, planned, name, monkeypatch):
    """Or it would say nothing of one."""
    asked: list[str] = []
    monkeypatch.setattr(
        asking, "_ask", lambda asked_id: asked.append(AskedPlan.objects.get(pk=asked_id).kind)
    )
    list(looked_at(world, name))

    assert set(asked) == {ASKS[name]}


@pytest.mark.parametrize("name", PLANS)
def test_what_may_plan_does(world, planned, name):
    """Or it needs no leave."""
    list(looked_at(world, name))

    assert planned
