"""The tree of the example organisation and its clock."""

from datetime import timedelta

import pytest

from scheduling.models import Cluster
from tests.factories import NOW, example_cluster


@pytest.fixture
def cluster(monkeypatch):
    """The example organisation whose clock stands at NOW; ``cluster.tick(days)`` moves it."""
    cluster = example_cluster()
    clock = [NOW]
    monkeypatch.setattr(Cluster, "now", lambda self: clock[0])
    cluster.tick = lambda **delta: clock.__setitem__(0, clock[0] + timedelta(**delta))
    return cluster


@pytest.fixture
def research(cluster):
    return cluster.queues.get(name="research")
