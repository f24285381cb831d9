"""A snapshot file with a claim that cannot be is refused with the path of what is wrong."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from scheduling.engine import SnapshotError, document

AT = "2026-01-05T10:00:00Z"
WORK = {"queue": "a", "priority_class": "p", "submitted": AT, "gpus": 8, "gpu_classes": ["h100"]}
RUNS = {**WORK, "name": "v", "state": "running", "started": AT, "gpu_class": "h100"}
CLAIMS = {
    **WORK, "name": "b", "awaits_victims": True, "gpu_class": "h100", "placement": {"n1": 1},
    "victims": ["v"], "claimed_since": AT,
}  # fmt: skip
FILE: dict[str, Any] = {
    "now": AT,
    "gpu_classes": [{"name": "h100"}],
    "nodes": [{"name": "n1", "gpu_class": "h100", "gpus": 8}],
    "queues": [{"name": "a", "quotas": {"h100": {"nominal": 8}}}],
    "priority_classes": [{"name": "p"}],
    "workloads": [{**RUNS, "placement": {"n1": 1}, "leaving": True}, CLAIMS],
}


def with_claim(**changes: Any) -> dict[str, Any]:
    file = deepcopy(FILE)
    file["workloads"][1] |= changes
    return file


def test_claim_on_what_is_about_to_come_free_is_read() -> None:
    claimant = document.parse(FILE).workloads[1]
    assert (claimant.victims, dict(claimant.placement)) == (("v",), {"n1": 1})


def test_claim_to_the_seats_of_others_who_stay_is_refused() -> None:
    file = deepcopy(FILE)
    file["workloads"][0]["leaving"] = False
    assert paths(file) == ["workloads[1].placement.n1"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"victims": ["v", "nobody"]}, "workloads[1].victims[1]"),
        ({"placement": {"n2": 1}}, "workloads[1].placement.n2"),
        ({"placement": {}}, "workloads[1].placement"),
        ({"awaits_victims": False, "placement": {}}, "workloads[1].victims"),
    ],
)
def test_claim_that_names_what_is_not_there_is_refused(changes: dict[str, Any], path: str) -> None:
    assert path in paths(with_claim(**changes))


def paths(file: dict[str, Any]) -> list[str]:
    with pytest.raises(SnapshotError) as refused:
        document.parse(file)
    return [fault.path for fault in refused.value.faults]
