"""The doors through which a cluster comes under Weir: add it, find its GPU classes, set its mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction

from scheduling.cluster.adapters.fitting import GPU_RESOURCE
from scheduling.cluster.connection.client import Client
from scheduling.cluster.picture.compose import count_devices
from scheduling.cluster.vocabulary.devices import PREFIX
from scheduling.cluster.vocabulary.quantities import quantity
from scheduling.models import Cluster, ClusterMode, GpuClass, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

Json = dict[str, Any]

PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "node.kubernetes.io/instance-type",
)
"""Node labels that tell GPUs of one resource apart, the best first."""
LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
GPU_DRIVERS = "gpu."
"""The drivers of devices that are GPUs: gpu.nvidia.com, gpu.amd.com, gpu.intel.com."""


@transaction.atomic
def add(name: str, *, author: AbstractBaseUser | None = None, **address: str) -> Cluster:
    """A cluster in observe mode with the root of its queue tree. Raises ServiceError.

    ``address`` holds what ``Cluster`` is reached by; none of it means the pod's service account.
    """
    cluster = Cluster(name=name, mode=ClusterMode.OBSERVE, **address)
    try:
        cluster.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise ServiceError("invalid", f"{field}: {messages[0]}", field=field) from error
    cluster.save()
    Queue.objects.create(cluster=cluster, name=name)
    announce("cluster.added", actor=author, cluster=cluster, subject=name)
    return cluster


def set_mode(
    cluster: Cluster, mode: ClusterMode, *, author: AbstractBaseUser | None = None
) -> bool:
    """Set the mode from the next cycle on; whether it was another one.

    History keeps it with ``author``, a user or None.
    """
    if cluster.mode == mode:
        return False
    before, cluster.mode = cluster.mode, mode
    cluster._history_user = author  # type: ignore[attr-defined]  # read by simple_history
    # The other columns change under the engine's hands meanwhile.
    with transaction.atomic():
        cluster.save(update_fields=["mode"])
        announce(
            "cluster.mode_set",
            actor=author,
            cluster=cluster,
            subject=cluster.name,
            before={"mode": before},
            after={"mode": mode.value},
        )
    cluster.touch()
    return True


def reserve(gpu_class: GpuClass, nodes: Mapping[str, str] | None) -> GpuClass:
    """Keep nodes for GPU work from the next pass of the guardrails on: those with the labels ``nodes``,
    all of the class where that is empty, none with None. Raises ServiceError at ``nodes``.
    """
    labels = {} if nodes is None else dict(nodes) or dict(gpu_class.node_labels)
    if nodes is not None and not labels:
        raise ServiceError(
            "no_labels",
            f"Nothing tells the nodes of {gpu_class.name} from others.",
            "Name a label that the nodes to reserve carry.",
            field="nodes",
        )
    for key, value in labels.items():
        if not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
            raise ServiceError(
                "bad_label",
                f"{key}={value} is no label of a node.",
                "Write it as kubectl shows it, such as pool=training.",
                field="nodes",
            )
    gpu_class.reserved_labels = labels
    gpu_class.save(update_fields=["reserved_labels"])
    gpu_class.cluster.touch()
    return gpu_class


def find_classes(cluster: Cluster) -> list[GpuClass]:
    """Make a GPU class for each kind of GPU that the nodes show and no class covers yet.

    A kind is a resource name (of a device plugin, or of a DeviceClass that a GPU driver's devices are of)
    and the value of a product label. Raises ApiError.
    """
    client = Client.connect(cluster)
    try:
        nodes = client.get("/api/v1/nodes")["items"]
        counted = count_devices(client, drivers=GPU_DRIVERS)
    finally:
        client.close()
    known = {
        (c.resource_name, tuple(sorted(c.node_labels.items()))) for c in cluster.gpu_classes.all()
    }
    names = set(cluster.gpu_classes.values_list("name", flat=True))
    made = []
    kinds = {k for n in nodes for k in _kinds(n, counted.offered(n["metadata"]["name"]))}
    for resource, label in sorted(kinds):
        if (resource, tuple(sorted(label))) in known:
            continue
        name = _name(resource, dict(label), names)
        names.add(name)
        made.append(
            GpuClass.objects.create(
                cluster=cluster,
                name=name,
                resource_name=resource,
                node_labels=dict(label),
                position=len(names) - 1,
            )
        )
    return made


def _kinds(
    node: Json, devices: Mapping[str, int]
) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """(resource, its product label) of everything on ``node`` that is a GPU."""
    held = node["metadata"].get("labels") or {}
    key = next((k for k in PRODUCT_LABELS if k in held), None)
    label = ((key, held[key]),) if key else ()
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for resource, amount in allocatable.items():
        if GPU_RESOURCE.match(resource) and quantity(amount) > 0:
            yield resource, label
    for resource in devices:
        yield resource, label


def _name(resource: str, label: dict[str, str], taken: set[str]) -> str:
    """``a100-sxm4-80gb`` for a product, with the profile of a MIG slice behind it.

    Devices are called as their class is: it tells them apart, and its prefix belongs to who wrote it.
    """
    if resource.startswith(PREFIX):
        label = {}
    product = next(iter(label.values()), resource.rpartition("/")[2]).lower()
    parts = [re.sub(r"^(nvidia|amd|tesla)-", "", re.sub(r"[^a-z0-9.]+", "-", product)).strip("-.")]
    if "/mig-" in resource:
        parts.append(resource.partition("/")[2])
    name = "-".join(parts)[:60].strip("-.")
    return name if name not in taken else f"{name}-{len(taken)}"
