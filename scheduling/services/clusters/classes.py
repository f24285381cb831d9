"""The doors by which GPU classes and priority classes are made and changed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from scheduling.models import Cluster, GpuClass, PriorityClass
from scheduling.services.clusters.add import LABEL_KEY, LABEL_VALUE
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

GPU_FIELDS = (
    "name", "resource_name", "node_labels", "exchange_rate", "price_per_gpu_hour", "wait_slo_s",
)  # fmt: skip
LEAST_SLO_S, MOST_SLO_S = 60, 30 * 86400
PRIORITY_FIELDS = ("name", "value", "preemptible", "min_run_time_s", "type", "is_default")


@transaction.atomic
def save_gpu_class(
    *,
    cluster: Cluster,
    values: Mapping[str, Any],
    author: AbstractBaseUser | None,
    gpu_class: GpuClass | None = None,
) -> GpuClass:
    """Make a GPU class of ``cluster``, or change fields of one; ``values`` are of GPU_FIELDS.

    Raises ServiceError at a field.
    """
    found = gpu_class or GpuClass(cluster=cluster, position=_next(cluster))
    before = _as_json(found, GPU_FIELDS) if gpu_class else {}
    for name in GPU_FIELDS:
        if name in values:
            setattr(found, name, values[name])
    for key, value in found.node_labels.items():
        if not LABEL_KEY.fullmatch(str(key)) or not LABEL_VALUE.fullmatch(str(value)):
            raise ServiceError(
                "bad_label",
                f"{key}={value} is no label of a node.",
                "Write it as kubectl shows it, such as pool=training.",
                field="node_labels",
            )
    if found.exchange_rate <= 0:
        raise ServiceError(
            "bad_rate", "A rate is above 0.", "Write 1 for the reference.", field="exchange_rate"
        )
    if found.wait_slo_s is not None and not LEAST_SLO_S <= found.wait_slo_s <= MOST_SLO_S:
        raise ServiceError(
            "bad_slo", "An SLO of waits is between 1 minute and 30 days.",
            "Write minutes from 1 to 43,200, or leave it empty for none.", field="wait_slo_s",
        )  # fmt: skip
    _save(found, author)
    _tell("gpu_class.saved", found, cluster, author, before, _as_json(found, GPU_FIELDS))
    cluster.touch()
    return found


@transaction.atomic
def save_priority_class(
    *,
    values: Mapping[str, Any],
    author: AbstractBaseUser | None,
    priority_class: PriorityClass | None = None,
) -> PriorityClass:
    """Make a priority class, or change fields of one; one that becomes the default is the only one."""
    found = priority_class or PriorityClass()
    before = _as_json(found, PRIORITY_FIELDS) if priority_class else {}
    for name in PRIORITY_FIELDS:
        if name in values:
            setattr(found, name, values[name])
    if found.is_default:
        for former in PriorityClass.objects.filter(is_default=True).exclude(pk=found.pk or 0):
            former.is_default = False
            former.save(update_fields=["is_default"])
    _save(found, author)
    _tell("priority_class.saved", found, None, author, before, _as_json(found, PRIORITY_FIELDS))
    for cluster in Cluster.objects.all():
        cluster.touch()
    return found


def _next(cluster: Cluster) -> int:
    last = cluster.gpu_classes.aggregate(at=Max("position"))["at"]
    return 0 if last is None else last + 1


def _save(row: GpuClass | PriorityClass, author: AbstractBaseUser | None) -> None:
    try:
        row.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        if field == "__all__":
            raise ServiceError(
                "name_taken", f"There is a class {row.name}.", "Choose another name.", field="name"
            ) from error
        said = field.replace("_", " ")
        raise ServiceError(
            f"bad_{field}", f"That cannot be its {said}.", messages[0], field=field
        ) from error
    row._history_user = author  # type: ignore[union-attr]  # read by the history of GPU classes
    row.save()


def _as_json(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        return float(value) if isinstance(value, Decimal) else value

    return {name: plain(getattr(row, name)) for name in names}


def _tell(
    kind: str,
    row: GpuClass | PriorityClass,
    cluster: Cluster | None,
    author: AbstractBaseUser | None,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    changed = [name for name in after if before.get(name) != after[name]]
    announce(
        kind,
        actor=author,
        cluster=cluster,
        subject=row.name,
        before={name: before.get(name) for name in changed},
        after={name: after[name] for name in changed},
    )
