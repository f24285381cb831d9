"""The example organisation with a lead who approves up to 3 GPUs, an approver, and an engine that answers.

fra1 ── research 64 ── language 36 ── pretraining 24, alignment 12
                    ── vision 16, speech 8, robotics 4
"""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from portal.accounts.models import Persona, User
from portal.approvals.states import Figure, Kind
from portal.approvals.wishes import Wish
from portal.teams import namespaces
from portal.teams.models import Membership, Team
from scheduling.models import MILLI, Cluster, Queue, Quota
from scheduling.services.snapshot import build as snapshots
from tests.factories import NOW, example_cluster, make_user
from tests.foresight import live_of
from workshop.demo.organisation import H100


@dataclass
class People:
    asker: User
    lead: User
    approver: User
    admin: User
    neighbour: User


@pytest.fixture
def cluster(db, monkeypatch) -> Cluster:
    """Its clock stands still at NOW until a test sets it; no namespace stands on it yet."""
    monkeypatch.setattr(namespaces, "has_namespace", lambda cluster, name: False)
    monkeypatch.setattr(snapshots, "live", live_of)
    cluster = example_cluster()
    set_clock(cluster, NOW)
    return cluster


def set_clock(cluster: Cluster, at) -> None:
    """Hold the cluster's time at ``at``."""
    from django.utils import timezone

    Cluster.objects.filter(pk=cluster.pk).update(
        clock_start=at, clock_real=timezone.now(), clock_speed=0
    )
    cluster.refresh_from_db()


@pytest.fixture
def people(cluster) -> People:
    approver = make_user("approver")
    Membership.objects.create(
        user=approver,
        team=Team.objects.get(queue__parent=None),
        persona=Persona.objects.get(name="approver"),
    )
    named = {name: User.objects.get(username=name) for name in ("lead", "admin", "a.novak")}
    return People(
        asker=User.objects.get(username="s.marchetti"),
        lead=named["lead"],
        approver=approver,
        admin=named["admin"],
        neighbour=User.objects.get(username="p.rossi"),
    )


@pytest.fixture
def wish(cluster):
    """``wish(gpus=4)``: alignment asks for h100, taken from vision, for four weeks."""

    def make(queue: str = "alignment", giver: str | None = "vision", **more) -> Wish:
        gpus = more.pop("gpus", 8)
        return Wish(**{
            "kind": Kind.QUOTA,
            "queue": queue_of(cluster, queue),
            "gpu_class": H100,
            "figure": Figure.NOMINAL,
            "gpus": None if gpus is None else gpus * MILLI,
            "giver": queue_of(cluster, giver) if giver else None,
            "ends_at": NOW + timedelta(days=28),
            "reason": "DPO runs need two whole nodes.",
            **more,
        })  # fmt: skip

    return make


def queue_of(cluster: Cluster, name: str) -> Queue:
    return Queue.objects.select_related("cluster", "parent").get(cluster=cluster, name=name)


def nominal(cluster: Cluster, name: str, at=NOW) -> float:
    """GPUs of h100 in force at ``at``."""
    row = Quota.objects.filter(queue__name=name, gpu_class__name=H100).in_force(at).get()
    return row.nominal_gpus / MILLI
