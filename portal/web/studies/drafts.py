"""From a what-if to an edit of quotas that is not saved yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from portal.accounts.models import User
from portal.teams.access import dividable_queues
from portal.web.quotas.edit_form import cell_name
from scheduling.models import Cluster, GpuClass, Queue, Study
from scheduling.services.studies.whatif.documents import COLUMNS

Json = dict[str, Any]
DRAFT = "draft"
"""Parameter of the address of the quotas page: what else is in it was typed and is not saved."""


@dataclass(frozen=True, slots=True)
class Draft:
    """``address`` of the grid of ``queue`` with the edits in it; ``left_out`` names what is no quota."""

    queue: Queue
    address: str
    left_out: str


def quota_draft(user: User, question: Study) -> Draft | None:
    """None where the question changes no quota, or the person does not divide all queues that it is about."""
    return draft_of(user, question.cluster, question.changes, question.name)


def draft_of(user: User, cluster: Cluster, changes: Sequence[Json], reason: str) -> Draft | None:
    """The same of any changes, with ``reason`` typed in."""
    quotas = [one for one in changes if one["kind"] == "quota"]
    queues = _queues(cluster, {one["queue"] for one in quotas})
    top = _top(user, cluster, queues.values())
    if not quotas or top is None or len(queues) != len({one["queue"] for one in quotas}):
        return None
    classes = {one.name: one for one in cluster.gpu_classes.all()}
    cells = {name: text for one in quotas for name, text in _cells(one, queues, classes)}
    more = {DRAFT: "1", "reason": reason, **cells}
    others = sorted({one["kind"] for one in changes} - {"quota"})
    page = reverse("web:quotas", args=[cluster.name, top.name])
    return Draft(top, f"{page}?{urlencode(more)}", ", ".join(others))


def _queues(cluster: Cluster, names: set[str]) -> dict[str, Queue]:
    found = Queue.objects.filter(cluster=cluster, parent__isnull=False, name__in=names)
    return {queue.name: queue for queue in found}


def _top(user: User, cluster: Cluster, queues: Iterable[Queue]) -> Queue | None:
    """The lowest queue that the person divides and that all of ``queues`` are below of."""
    divided = dividable_queues(user).filter(cluster=cluster)
    above = [
        one for one in divided if all(_is_below(queue, one) and queue != one for queue in queues)
    ]
    return max(above, key=lambda one: (not one.is_root, one.path.count("/")), default=None)


def _is_below(queue: Queue, top: Queue) -> bool:
    return top.is_root or queue.path.startswith(f"{top.path}/")


def _cells(
    change: Json, queues: Mapping[str, Queue], classes: Mapping[str, GpuClass]
) -> Iterator[tuple[str, str]]:
    """Name and text of the inputs that the change fills."""
    gpu_class = classes.get(change["gpu_class"])
    for field, name in COLUMNS.items():
        if gpu_class is not None and name in change:
            value = change[name]
            text = "all" if value is None else f"{value:g}"
            yield cell_name(queues[change["queue"]], gpu_class, field), text
