"""What a node selector and a required node affinity say of a node."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.cluster.adapters.affinity import allows

Json = dict[str, Any]

LABELS = {"zone": "a", "gpu": "h100", "gpus": "8"}


def term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ({}, True),
        ({"zone": "a", "gpu": "h100"}, True),
        ({"zone": "b"}, False),
        ({"disk": "ssd"}, False),
    ],
)
def test_selector_needs_every_label(selector: dict[str, str], allowed: bool) -> None:
    assert allows(selector, [], "n1", LABELS) is allowed


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        (term("zone", "In", "a", "b"), True),
        (term("zone", "In", "b"), False),
        (term("disk", "In", "ssd"), False),
        (term("zone", "NotIn", "b"), True),
        (term("zone", "NotIn", "a"), False),
        (term("disk", "NotIn", "ssd"), True),
        (term("zone", "Exists"), True),
        (term("disk", "Exists"), False),
        (term("zone", "DoesNotExist"), False),
        (term("disk", "DoesNotExist"), True),
        (term("gpus", "Gt", "4"), True),
        (term("gpus", "Gt", "8"), False),
        (term("gpus", "Lt", "9"), True),
        (term("zone", "Gt", "4"), False),
        (term("disk", "Lt", "4"), False),
        (term("gpus", "Gt"), False),
        (term("zone", "Near", "a"), False),
        ({"matchExpressions": [{"key": "zone", "operator": {}, "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": ["zone"], "operator": "In", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": 5}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}, False),
        ({**term("zone", "In", "b"), "matchFields": []}, False),
        ({}, False),
    ],
)
def test_term_matches_as_kube_scheduler_reads_it(wanted: Json, allowed: bool) -> None:
    assert allows({}, [wanted], "n1", LABELS) is allowed


def test_one_term_of_several_is_enough_and_the_selector_counts_beside_it() -> None:
    terms = [term("zone", "In", "b"), term("gpu", "In", "h100")]

    assert allows({"zone": "a"}, terms, "n1", LABELS)
    assert not allows({"zone": "b"}, terms, "n1", LABELS)
