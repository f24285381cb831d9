"""The demo's cluster holds what is there, not what was."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.factories import make_cluster
from workshop.demo.cluster.embedded_cluster import HISTORY, EmbeddedCluster
from workshop.testbed.server.kinds.resources import PODS
from workshop.testbed.server.store.store import Record

pytestmark = pytest.mark.django_db


def versions_held() -> int:
    gc.collect()
    return sum(type(one) is Record for one in gc.get_objects())


def test_object_written_again_and_again_takes_no_more_memory(tmp_path: Path) -> None:
    start = datetime(2026, 1, 5, tzinfo=UTC)
    cluster = EmbeddedCluster(make_cluster("c"), path=tmp_path / "c", speed=1.0, start=start)
    store, before = cluster.server.store, versions_held()
    pod = store.insert(PODS, {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {}})
    for number in range(4 * HISTORY):
        pod = store.replace(pod, {**pod.body, "status": {"seen": number}})
    assert versions_held() - before <= HISTORY + 2
