"""An engine looks at leases before it loads the rest of itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from scheduling.cluster.connection.lease import DURATION_S, Lease
from scheduling.models import Cluster, ClusterMode
from scheduling.services.clusters import connection
from scheduling.services.worker import cluster_turns as workers
from scheduling.services.worker import first_look
from tests.scheduling.kube import World

LOADING = """
import sys
from types import SimpleNamespace
from django.apps import apps
from portal.config.celery import app

def begin(words):
    sys.stdout.write(f"{apps.ready} {'scheduling.tasks' in sys.modules}")

sys.modules["scheduling.services.worker.first_look"] = SimpleNamespace(begin=begin)
app.loader.import_default_modules()
"""


@pytest.fixture
def dead(world: World) -> Lease:
    """Of an engine that held the lease when it was killed."""
    made = Lease(world.kube, holder="dead")
    assert made.hold()
    return made


@pytest.fixture(autouse=True)
def looked_at(monkeypatch: pytest.MonkeyPatch) -> dict[object, object]:
    found: dict[object, object] = {}
    monkeypatch.setattr(connection, "_looked_at", found)
    return found


@pytest.mark.usefixtures("dead")
def test_cycle_goes_on_from_the_look_before_it(world: World) -> None:
    first_look.look_at_all()
    lease = workers.held_of(world.cluster, on_change=lambda: None).link.lease

    assert 0 < lease.free_in_s() <= DURATION_S


def test_observed_cluster_is_not_looked_at(world: World, looked_at: dict[object, object]) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    first_look.look_at_all()

    assert looked_at == {}


@pytest.mark.usefixtures("db")
def test_cluster_out_of_reach_is_left_to_its_cycle(looked_at: dict[object, object]) -> None:
    Cluster.objects.create(name="away", mode=ClusterMode.ENFORCE, api_url="http://127.0.0.1:9")
    first_look.look_at_all()

    assert looked_at == {}


@pytest.mark.parametrize(
    ("words", "queues"),
    [
        (["celery", "worker", "--queues", "clusters"], ["clusters"]),
        (["celery", "worker", "--queues=cluster-fra1,celery"], ["cluster-fra1", "celery"]),
        (["celery", "worker", "-Q", "studies"], ["studies"]),
        (["celery", "beat"], []),
    ],
)
def test_queues_are_those_of_the_command(words: list[str], queues: list[str]) -> None:
    assert list(first_look.queues_of(words)) == queues


def test_look_begins_when_django_is_there_and_before_tasks_are() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "portal.config.settings"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "True False", done.stderr
