"""What an empty cluster gets before anybody uses it: nodes with GPUs, some of them partitioned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scheduling.cluster.connection.client import Client, ConflictError
from scheduling.cluster.connection.kubeconfig import configuration_from
from workshop.testbed.kubelets import Machine, node_manifest

from .access import Access

_PRODUCT = "nvidia.com/gpu.product"
_RACK, _BLOCK = "weir.dev/rack", "weir.dev/block"


def furnish(access: Access, machines: Iterable[Machine] | None = None) -> None:
    """Register ``machines`` (default: the examples) as nodes; those that are there stay."""
    client = Client(configuration_from(access.kubeconfig, access.context))
    for machine in example_machines() if machines is None else machines:
        try:
            client.create("/api/v1/nodes", node_manifest(machine))
        except ConflictError:
            continue
    client.close()


def example_machines() -> Iterator[Machine]:
    """Two blocks: whole H100s in two racks, whole A100s, and A100s cut into MIG profiles."""
    for number in range(8):
        place = {_BLOCK: "b1", _RACK: f"b1-r{number // 4 + 1}"}
        yield _machine(f"h100-{number + 1}", "NVIDIA-H100-80GB-HBM3", place, gpus=8)
    for number in range(4):
        place = {_BLOCK: "b2", _RACK: "b2-r1"}
        yield _machine(f"a100-{number + 1}", "NVIDIA-A100-SXM4-40GB", place, gpus=8)
    for number in range(2):
        place = {_BLOCK: "b2", _RACK: "b2-r2"}
        profiles = {"nvidia.com/mig-1g.5gb": 28, "nvidia.com/mig-3g.20gb": 8}
        yield _machine(f"mig-{number + 1}", "NVIDIA-A100-SXM4-40GB", place, gpus=0, **profiles)


def _machine(
    name: str, product: str, place: dict[str, str], *, gpus: int, **others: int
) -> Machine:
    return Machine(
        name=name,
        resource_name="nvidia.com/gpu",
        gpus=gpus,
        cpus=128,
        memory_gib=1024,
        labels={_PRODUCT: product, **place},
        others=others,
    )
