"""The doors through which a cluster comes under Weir: add it, find its GPU classes, set its mode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction

from scheduling.cluster.connection.client import Client
from scheduling.cluster.picture.compose import count_devices
from scheduling.cluster.vocabulary import vendors
from scheduling.cluster.vocabulary.quantities import quantity
from scheduling.models import Cluster, ClusterMode, GpuClass, Queue
from scheduling.services.clusters.naming import name_for, product_label
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

Json = dict[str, Any]
Kind = tuple[str, tuple[tuple[str, str], ...]]
"""A resource, and the product label of the nodes that offer it."""

LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


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
        raise ServiceError(
            "invalid", f"That cannot be its {field.replace('_', ' ')}.", messages[-1], field=field
        ) from error
    cluster.save()
    Queue.objects.create(cluster=cluster, name=name)
    announce("cluster.added", actor=author, cluster=cluster, subject=name)
    return cluster


def set_mode(
    cluster: Cluster,
    mode: ClusterMode,
    *,
    author: AbstractBaseUser | None = None,
    left_outside: str = "",
) -> bool:
    """Set the mode from the next cycle on; whether it was another one.

    History keeps it with ``author``, a user or None, and the audit log what that person saw left outside.
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
            after={"mode": mode.value, **({"left_outside": left_outside} if left_outside else {})},
        )
    cluster.touch()
    return True


DISPLAYED = ("currency", "display_time_zone")


@transaction.atomic
def set_display(
    *, cluster: Cluster, currency: str, display_time_zone: str, author: AbstractBaseUser | None
) -> Cluster:
    """Say in which currency its prices are, and in which time zone its days begin. Nothing is converted."""
    before = {name: getattr(cluster, name) for name in DISPLAYED}
    cluster.currency, cluster.display_time_zone = currency, display_time_zone
    cluster._history_user = author  # type: ignore[attr-defined]  # read by simple_history
    cluster.save(update_fields=DISPLAYED)
    announce(
        "cluster.display_set",
        actor=author,
        cluster=cluster,
        subject=cluster.name,
        before=before,
        after={name: getattr(cluster, name) for name in DISPLAYED},
    )
    cluster.touch()
    return cluster


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
    and the value of a product label; of nodes without one, the resource alone. Raises ApiError.
    """
    client = Client.connect(cluster)
    try:
        nodes = client.get("/api/v1/nodes")["items"]
        counted = count_devices(client, drivers=vendors.is_driver)
    finally:
        client.close()
    made: list[GpuClass] = []
    known = list(cluster.gpu_classes.all())
    names = {c.name for c in known}
    offers = [(n, counted.offered(n["metadata"]["name"])) for n in nodes]
    for resource, label in sorted({k for n, devices in offers for k in _kinds(n, devices, known)}):
        name = name_for(resource, dict(label), names)
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


def _kinds(node: Json, devices: Mapping[str, int], known: Sequence[GpuClass]) -> Iterator[Kind]:
    """Of everything on ``node`` that is a GPU, what no class of ``known`` covers."""
    labels = node["metadata"].get("labels") or {}
    label = product_label(labels)
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    offered = [r for r, n in allocatable.items() if vendors.is_gpu(r) and quantity(n) > 0]
    for resource in (*offered, *devices):
        of_it = (c.node_labels for c in known if c.resource_name == resource)
        # A class without labels leaves a product that a label names to a class of its own.
        if not any(own.items() <= labels.items() and (own or not label) for own in of_it):
            yield resource, tuple(label.items())
