"""One world for every walk of a process."""

from collections import OrderedDict

import pytest
from django.db import transaction

from portal.plans import asking
from portal.web.cycles import views as cycles
from portal.web.frame.revision_cache import remembered
from scheduling.engine import planner
from scheduling.services.snapshot import build as snapshots
from tests.walk.asking import PLANNED, one_connection
from tests.walk.world import build

LONGER_THAN_A_WALK_S = 86_400.0


@pytest.fixture(scope="package")
def world(django_db_setup, django_db_blocker):
    """Built once; each test runs in a transaction inside this one."""
    with django_db_blocker.unblock(), one_connection(), transaction.atomic():
        yield build()
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def slots():
    return OrderedDict()


@pytest.fixture(autouse=True)
def remembering(unhurried, slots, settings, monkeypatch):
    """As in production what is computed for one is shown to whom its key says it is for: whom it names too
    many things to, the walk must see. The world stays as it is, so it is kept from address to address."""
    settings.WEIR_REMEMBERED_S = LONGER_THAN_A_WALK_S
    monkeypatch.setattr(remembered, "_slots", slots)


@pytest.fixture(autouse=True)
def planning(plans_at_once, monkeypatch):
    """What plans is noted, but for what a worker plans: here it does so between question and answer."""
    workers: list[int] = []

    def of_a_worker(asked_id):
        workers.append(asked_id)
        try:
            asking.answer(asked_id)
        finally:
            workers.pop()

    def noted(name, plan):
        def act(*args, **kwargs):
            if not workers:
                PLANNED.append(name)
            return plan(*args, **kwargs)

        return act

    monkeypatch.setattr(asking, "_ask", of_a_worker)
    for room, name in PLANNERS:
        monkeypatch.setattr(room, name, noted(name, getattr(room, name)))


PLANNERS = (
    (snapshots, "live"),
    (snapshots, "live_under"),
    (planner, "plan_world"),
    (cycles, "searches_of"),
)
