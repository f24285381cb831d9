"""Answers of ten questions of each kind, byte for byte as they were.

A change of engine or forecasts that is meant renews the digests: WEIR_GOLDEN names a folder for the answers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from scheduling.models import Cluster
from scheduling.services.snapshot import build as snapshots
from tests.adapting import turned_on
from tests.factories import example_cluster
from tests.foresight import live_of
from tests.lab import with_work
from tests.scheduling.services.studies.asked import KINDS

pytestmark = pytest.mark.django_db
GOLDEN = Path(__file__).with_name("golden.json")
ROWS = re.compile(r'"experiment": \d+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^"]*')
"""Numbers of rows, and moments of a cluster's clock."""


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, (_, asked) in KINDS.items() for name in asked]
)
def test_answer_is_as_it_was(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(Cluster, "now", lambda self: self.clock_start)
    cluster = example_cluster()
    answered, asked = KINDS[kind]
    turned_on(cluster, monkeypatch) if kind == "adapting" else with_work(cluster)
    text = _text(answered(cluster, asked[name]))
    if folder := os.environ.get("WEIR_GOLDEN"):
        (Path(folder) / f"{kind}-{name.replace(' ', '_')}.json").write_text(text)
    assert (
        hashlib.sha256(text.encode()).hexdigest()[:16] == json.loads(GOLDEN.read_text())[kind][name]
    )


def _text(told: Any) -> str:
    return ROWS.sub("", json.dumps(told, sort_keys=True, indent=1, default=str))
