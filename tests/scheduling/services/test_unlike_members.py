"""Where a gang of unlike members holds its places."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.adapters.base import Shape, Sighting
from scheduling.services.snapshot.situations import placement_of
from tests.scheduling import manifests
from tests.scheduling.operators import adapter_of

CLASSES = (ClassSpec("h100", "nvidia.com/gpu", {"gpu": "h100"}),)
CREATED = datetime(2026, 1, 5, 10, tzinfo=UTC).isoformat()


def gang(**seen: Any) -> Sighting:
    """A head of one GPU and two workers of four, planned on two nodes, and what was ``seen`` of them."""
    manifest = manifests.ray_cluster("w", gpus=4)
    manifest["metadata"] |= {"uid": "u", "creationTimestamp": CREATED}
    manifest["spec"]["headGroupSpec"]["template"] = manifests.template(1)
    read = adapter_of("RayCluster").observe(manifest, (), CLASSES)
    return replace(read, planned={"n2": 4, "n1": 5}, **seen)


@pytest.mark.parametrize(
    ("parts", "wanted", "held"),
    [
        pytest.param({"n1": 5, "n2": 4}, 9, {"n1": 5, "n2": 4}, id="as_planned"),
        pytest.param({"n1": 1}, 9, {"n1": 5, "n2": 4}, id="some_not_bound_yet"),
        pytest.param({"n3": 5, "n2": 4}, 9, {"n2": 4, "n3": 5}, id="on_another_node"),
        pytest.param({"n1": 4, "n2": 4}, 8, {"n1": 4, "n2": 4}, id="one_is_done"),
    ],
)
def test_places_that_it_holds(parts: dict[str, int], wanted: int, held: dict[str, int]) -> None:
    assert placement_of(gang(placement=parts, members_wanted=wanted)) == held


@pytest.mark.parametrize(("milli", "gpus"), [(8000, 8), (500, 0.5), (1500, 1.5)])
def test_shape_of_a_share_of_a_gpu_keeps_its_part(milli: int, gpus: float) -> None:
    assert Shape(("head",), 1, milli).document() == {"roles": ["head"], "pods": 1, "gpus": gpus}
