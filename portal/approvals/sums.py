"""What queues beside each other would hold of what their parent was given, as the grid adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from scheduling.models import MILLI, GpuClass, Queue, Quota
from scheduling.services.quotas.shift import Figure, given_to


@dataclass(frozen=True, slots=True)
class Sum:
    """GPUs of nominal quota; ``is_strict``: more than was given is refused, as below every queue but the
    root."""

    parent: str
    before: float
    after: float
    given: float
    is_strict: bool

    @property
    def over(self) -> float:
        return max(0.0, self.after - self.given)

    @property
    def is_refused(self) -> bool:
        return self.is_strict and self.over > 0 and self.after > self.before


def sums(figures: list[Figure], gpu_class: GpuClass, at: datetime) -> Iterator[Sum]:
    """Of each queue above one whose nominal quota is changed."""
    after = {one.queue.pk: one.after or 0 for one in figures}
    parents = {one.queue.parent_id: one.queue.parent for one in figures if one.queue.parent_id}
    held = _children(list(parents), gpu_class, at)
    for pk, parent in parents.items():
        assert parent is not None  # noqa: S101 - only those with a parent were taken
        mine = held.get(pk, {})
        now = {one.queue.pk for one in figures if one.queue.parent_id == pk}
        will = {child: after.get(child, gpus) for child, gpus in mine.items()}
        will |= {child: after[child] for child in now}
        given = after[pk] if pk in after else given_to(parent, gpu_class, at)
        yield Sum(
            parent.name, sum(mine.values()) / MILLI, sum(will.values()) / MILLI, given / MILLI,
            not parent.is_root,
        )  # fmt: skip


def _children(
    parents: list[int | None], gpu_class: GpuClass, at: datetime
) -> Mapping[int | None, Mapping[int, int]]:
    """Parent -> child -> nominal milli-GPU in force."""
    queues = Queue.objects.filter(parent__in=parents)
    rows = Quota.objects.filter(queue__in=queues, gpu_class=gpu_class).in_force(at)
    found: dict[int | None, dict[int, int]] = {}
    for parent, queue, gpus in rows.values_list("queue__parent", "queue", "nominal_gpus"):
        found.setdefault(parent, {})[queue] = gpus
    return found


def documents(found: Iterator[Sum]) -> list[dict[str, Any]]:
    """As they are kept with a preview."""
    return [asdict(one) for one in found]
