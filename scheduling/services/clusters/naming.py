"""What tells the GPUs of one resource apart, and the name that a class of them is given."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from scheduling.cluster.vocabulary import vendors
from scheduling.cluster.vocabulary.devices import PREFIX
from scheduling.models import GpuClass

LONGEST = 60


def product_label(labels: Mapping[str, str]) -> dict[str, str]:
    """The one label of a node that tells its GPUs from others of their resource; empty where none does."""
    key = next((k for k in vendors.product_labels() if labels.get(k)), None)
    return {key: labels[key]} if key else {}


def name_for(resource: str, label: Mapping[str, str], taken: Collection[str] = ()) -> str:
    """``a100-sxm4-80gb`` for a product, with the profile of a MIG slice behind it; without a label
    ``nvidia-gpu``, after the resource. With a number where the name is ``taken``.

    Devices are called as their class is: it tells them apart, and its prefix belongs to who wrote it.
    """
    known = {} if resource.startswith(PREFIX) else label
    brands = "|".join(map(re.escape, vendors.brands()))
    product = _cut(re.sub(rf"^(({brands})-)+", "", _plain(next(iter(known.values()), ""))))
    if product and vendors.is_partition(resource):
        product = f"{product}-{resource.partition('/')[2]}"
    name = _cut(product) or _cut(_of_resource(resource)) or "gpu"
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(n for n in numbered if n not in taken)


def name_origin(gpu_class: GpuClass) -> str:
    """A sentence that says where the name of a class is from and which nodes are of it."""
    labels = gpu_class.node_labels
    pairs = ", ".join(f"{key}={value}" for key, value in labels.items())
    proposed = name_for(gpu_class.resource_name, labels)
    found = re.fullmatch(re.escape(proposed) + r"(-\d+)?", gpu_class.name)
    if labels:
        return f"Named after the label {pairs}." if found else f"Nodes with {pairs}."
    rest = f"every node that offers {gpu_class.resource_name} and is of no class with a label"
    if found:
        return (
            f"Named after its resource, as no label of these nodes names a product. It is {rest}."
        )
    return f"It is {rest}."


def _of_resource(resource: str) -> str:
    """``nvidia-gpu`` of ``nvidia.com/gpu``, ``intel-i915`` of ``gpu.intel.com/i915``."""
    domain, _, thing = resource.rpartition("/")
    if resource.startswith(PREFIX) or not domain:
        return _plain(thing)
    return _plain(f"{domain.removeprefix('gpu.').partition('.')[0]}-{thing}")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _cut(name: str) -> str:
    return name[:LONGEST].strip("-.")
