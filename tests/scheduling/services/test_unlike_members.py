"""Where a gang of unlike members holds its places, each as large as the largest of them needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.adapters.base import Observed, Shape
from scheduling.services.snapshot.situations import placement_of
from tests.scheduling import manifests
from tests.scheduling.operators import adapter_of

CLASSES = (ClassSpec("h100", "nvidia.com/gpu", {"gpu": "h100"}),)
CREATED = datetime(2026, 1, 5, 10, tzinfo=UTC).isoformat()
SHAPES = (Shape(("head",), 2, 1000), Shape(("workers",), 2, 4000))


def gang(*, unlike: bool = True, **seen: Any) -> Observed:
    """Four members that are planned on ``n1`` and ``n2``, and what was ``seen`` of their pods."""
    manifest = manifests.ray_cluster("w", gpus=4, least=4, most=4)
    manifest["metadata"] |= {"uid": "u", "creationTimestamp": CREATED}
    read = adapter_of("RayCluster").observe(manifest, (), CLASSES)
    return replace(read, shapes=SHAPES if unlike else (), planned={"n2": 2, "n1": 2}, **seen)


@pytest.mark.parametrize(
    ("unlike", "pods", "wanted", "held"),
    [
        pytest.param(True, {"n1": 2, "n2": 2}, 4, {"n1": 2, "n2": 2}, id="as_planned"),
        pytest.param(True, {"n1": 3, "n2": 1}, 4, {"n1": 2, "n2": 2}, id="small_ones_beside"),
        pytest.param(True, {"n1": 1}, 4, {"n1": 2, "n2": 2}, id="some_not_bound_yet"),
        pytest.param(True, {"n1": 3, "n3": 1}, 4, {"n1": 3, "n3": 1}, id="on_another_node"),
        pytest.param(True, {"n1": 3}, 3, {"n1": 3}, id="one_is_done"),
        pytest.param(False, {"n1": 3, "n2": 1}, 4, {"n1": 3, "n2": 1}, id="members_alike"),
    ],
)
def test_places_that_it_holds(
    unlike: bool, pods: dict[str, int], wanted: int, held: dict[str, int]
) -> None:
    seen = gang(unlike=unlike, placement=pods, members_wanted=wanted)
    assert placement_of(seen) == held


@pytest.mark.parametrize(("milli", "gpus"), [(8000, 8), (500, 0.5), (1500, 1.5)])
def test_shape_of_a_share_of_a_gpu_keeps_its_part(milli: int, gpus: float) -> None:
    assert Shape(("head",), 1, milli).document() == {"roles": ["head"], "pods": 1, "gpus": gpus}
