"""Which addresses ask a worker for a plan, and which may plan themselves. That no other does: each answer of
the walk is held to it (``checkers.waits_for_no_plan``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.plans import asking, kinds
from portal.plans.models import PlanQuestion
from tests.security.test_sealed_names import ADDRESSES as SEALED
from tests.walk.asking import Answer, ask
from tests.walk.checkers import PLANS
from tests.walk.world import World

pytestmark = pytest.mark.django_db
LOOKERS = ("admin", "chief", "lead")
ASKS = {
    "web:request": kinds.REQUEST,
    "web:loan": kinds.LOAN,
    "web:consolidation": kinds.NODES,
    "web:sooner": kinds.SOONER,
    "web:quota_revert": kinds.REVERT,
}
"""Address -> the kind of plan that it asks for."""


def looked_at(world: World, name: str) -> Iterator[Answer]:
    """Everybody whom it may be open to, with all of its queries."""
    queries = {query for query in SEALED[name].queries if query} if name in SEALED else set()
    url = world.url(name)
    for who in LOOKERS:
        yield ask(world, who, "GET", name, url)
        for query in sorted(queries):
            yield ask(world, who, "GET", name, url.partition("?")[0] + query)


@pytest.mark.parametrize("name", ASKS)
def test_the_address_asks_a_worker_for_its_plan(world, name, monkeypatch):
    """Or it would say nothing of one."""
    asked: list[str] = []
    monkeypatch.setattr(
        asking, "_ask", lambda asked_id: asked.append(PlanQuestion.objects.get(pk=asked_id).kind)
    )
    list(looked_at(world, name))

    assert set(asked) == {ASKS[name]}


@pytest.mark.parametrize("name", PLANS)
def test_what_may_plan_does(world, name):
    """Or it needs no leave."""
    assert any(answer.planned for answer in looked_at(world, name))
