"""What queues beside each other would hold of what their parent was given, as a shift of quota adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduling.models import MILLI, GpuClass, Queue, Quota
from scheduling.services.quotas.checks import breaks_sum
from scheduling.services.quotas.shift import Figure, given_to


@dataclass(frozen=True, slots=True)
class Sum:
    """GPUs of nominal quota below ``parent``, a queue's name; it is refused as a save would refuse it."""

    parent: str
    before: float
    after: float
    given: float
    is_refused: bool

    @property
    def over(self) -> float:
        return max(0.0, self.after - self.given)


def sums(figures: Sequence[Figure], gpu_class: GpuClass, at: datetime) -> Iterator[Sum]:
    """Of each queue above one whose nominal quota is changed."""
    after = {one.queue.pk: one.after or 0 for one in figures}
    parents = {one.queue.parent for one in figures if one.queue.parent is not None}
    held = _children(parents, gpu_class, at)
    for parent in sorted(parents, key=lambda queue: queue.path):
        mine = held.get(parent.pk, {})
        changed = {q.queue.pk: after[q.queue.pk] for q in figures if q.queue.parent_id == parent.pk}
        before, will = sum(mine.values()), sum({**mine, **changed}.values())
        had = given_to(parent, gpu_class, at)
        given = after.get(parent.pk, had)
        is_refused = breaks_sum(parent, will, given, will - before - (given - had))
        yield Sum(parent.name, before / MILLI, will / MILLI, given / MILLI, is_refused)


def _children(
    parents: set[Queue], gpu_class: GpuClass, at: datetime
) -> Mapping[int | None, Mapping[int, int]]:
    """Parent -> child -> nominal milli-GPU in force."""
    queues = Queue.objects.filter(parent__in=parents)
    rows = Quota.objects.filter(queue__in=queues, gpu_class=gpu_class).in_force(at)
    found: dict[int | None, dict[int, int]] = {}
    for parent, queue, gpus in rows.values_list("queue__parent", "queue", "nominal_gpus"):
        found.setdefault(parent, {})[queue] = gpus
    return found
