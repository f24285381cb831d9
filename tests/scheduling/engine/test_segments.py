"""Segments at the door of a snapshot, and what would start a gang that waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.engine import SnapshotError, plan
from scheduling.engine.document import parse
from scheduling.engine.document.reader import dump
from scheduling.engine.whatif.change import Change
from scheduling.engine.whatif.relaxations import relaxations

GANG = {
    "name": "gang", "queue": "team", "priority_class": "train", "gpus": 8,
    "submitted": "2026-01-05T09:00:00Z",
}  # fmt: skip


def world(topology: Any, **more: Any) -> dict[str, Any]:
    """Two racks of two nodes."""
    return {
        "now": "2026-01-05T10:00:00Z",
        "gpu_classes": [{"name": "h100"}],
        "priority_classes": [{"name": "train"}],
        "queues": [{"name": "team", "quotas": {"h100": {"nominal": 32}}}],
        "nodes": [
            {"name": f"n{i}", "gpu_class": "h100", "gpus": 8, "topology": {"rack": f"r{i // 2}"}}
            for i in range(4)
        ],
        "workloads": [{**GANG, "topology": topology, "members": {"min": 4}, **more}],
    }


@pytest.mark.parametrize(
    ("topology", "more", "at", "expected", "remedy"),
    [
        (
            {"segment": {"members": 3, "required": "rack"}}, {},
            ".topology.segment.members", "a divisor of its 4 members",
            "correct one of them: a gang consists of whole segments",
        ),
        (
            {"segment": {"members": 2, "required": "rack"}}, {"members": {"min": 2, "max": 5}},
            ".topology.segment.members", "a divisor of its 5 members",
            "correct one of them: a gang consists of whole segments",
        ),
        (
            {"segment": {"members": 2}}, {},
            ".topology.segment", "a level that is required or preferred",
            "name the level once, as one of them",
        ),
        (
            {"segment": {"members": 2, "required": "rack", "preferred": "rack"}}, {},
            ".topology.segment", "a level that is required or preferred",
            "name the level once, as one of them",
        ),
        (
            {"required": "rack", "segment": {"members": 2, "required": "block"}}, {},
            ".topology.segment.required", "rack, or a level below it",
            "name one, or none for the whole gang",
        ),
        (
            {"preferred": "node", "segment": {"members": 2, "preferred": "rack"}}, {},
            ".topology.segment.preferred", "node, or a level below it",
            "name one, or none for the whole gang",
        ),
        (
            {"segment": {"members": 2, "required": "aisle"}}, {},
            ".topology.segment.required", "one of block, rack, node", "correct it",
        ),
    ],
)  # fmt: skip
def test_segments_that_a_gang_cannot_consist_of_are_refused(
    topology: Any, more: Any, at: str, expected: str, remedy: str
) -> None:
    with pytest.raises(SnapshotError) as caught:
        plan(parse(world(topology, **more)))
    fault = caught.value.faults[0]
    assert fault.path == f"workloads[0]{at}"
    assert fault.expected == expected
    assert fault.remedy == remedy


def test_segments_beside_roles_are_refused() -> None:
    document = world({"segment": {"members": 2, "required": "rack"}})
    [work] = document["workloads"]
    del work["gpus"], work["members"]
    work["roles"] = [{"name": "head", "gpus": 1}, {"name": "worker", "gpus": 8}]

    with pytest.raises(SnapshotError) as caught:
        parse(document)
    assert caught.value.faults[0].remedy == "take it out: segments are of members that are alike"


def test_document_that_is_written_and_read_again_has_its_segments() -> None:
    snapshot = parse(world({"required": "block", "segment": {"members": 2, "preferred": "rack"}}))

    assert parse(dump(snapshot)) == snapshot


def test_gang_that_waits_for_segments_is_told_to_prefer_them() -> None:
    document = world({"segment": {"members": 2, "required": "rack"}}, members={"min": 2})
    old = {**GANG, "state": "running", "started": "2026-01-05T09:30:00Z", "gpu_class": "h100"}
    document["workloads"] += [
        {**old, "name": f"old-{n}", "placement": {n: 1}} for n in ("n0", "n2")
    ]
    found = relaxations(parse(document), "gang")

    assert found[0].change is Change.SEGMENTS
    assert found[0].sentence.startswith(
        "Preferring every 2 members in one rack instead of requiring it, it would start on"
    )
