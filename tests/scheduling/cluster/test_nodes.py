"""Which GPU class a node belongs to."""

from __future__ import annotations

import pytest

from scheduling.cluster.adapters import ClassSpec
from scheduling.cluster.picture.nodes import rows_of, trim_node
from scheduling.cluster.vocabulary.devices import Devices
from tests.scheduling import kube

ANY = ClassSpec("any", "nvidia.com/gpu", {})
H100 = ClassSpec("h100", "nvidia.com/gpu", {"gpu": "h100"})
NVLINK = ClassSpec("h100-nvlink", "nvidia.com/gpu", {"gpu": "h100", "link": "nvlink"})
ALSO = ClassSpec("also-h100", "nvidia.com/gpu", {"gpu": "h100"})


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        ({"gpu": "h100", "link": "nvlink"}, [ANY, H100, NVLINK], "h100-nvlink"),
        ({"gpu": "h100", "link": "nvlink"}, [NVLINK, H100, ANY], "h100-nvlink"),
        ({"gpu": "h100"}, [ANY, H100, NVLINK], "h100"),
        ({"gpu": "a100"}, [ANY, H100, NVLINK], "any"),
        ({"gpu": "h100"}, [ALSO, H100], "also-h100"),
        ({"gpu": "h100"}, [H100, ALSO], "h100"),
    ],
)
def test_node_belongs_to_the_class_that_describes_it_most_closely_then_the_first(
    labels: dict[str, str], classes: list[ClassSpec], expected: str
) -> None:
    node = kube.node("n1")
    node["metadata"] |= {"uid": "1", "resourceVersion": "1", "labels": labels}
    [row] = rows_of(trim_node(node), (), classes, Devices())

    assert row.gpu_class == expected
