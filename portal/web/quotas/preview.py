"""What edits of the grid would do, planned on the live cluster before they are saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from portal.accounts.models import User
from portal.approvals import edits
from portal.approvals.plan_faults import fault
from portal.approvals.previews import ReadablePreview, ShareRow, seen_by
from portal.display.format import number
from portal.web.frame.revision_cache import remembered
from portal.web.quotas.replay import Replay
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.queues.faults import WORDS, QuotaCell, as_typed
from scheduling.services.queues.save import EditFault, Field, Grid
from scheduling.services.studies.whatif.preview import LEAVES, preview

Json = dict[str, Any]
SPARED = (Field.NOMINAL, Field.BORROWING_LIMIT, Field.WEIGHT)
"""What a queue keeps of it for the grace, as ``services.queues.entitlements`` gives it to the engine."""
UNPLANNED = "None of the edited fields changes what the engine plans at this moment."
NOTHING = "A budget of GPU-hours starts and stops nobody by itself."


@dataclass(frozen=True, slots=True)
class LoweredQuota:
    """``what`` a queue is lowered by, and who has to go once the grace is over."""

    queue: str
    gpu_class: str
    what: str
    until: datetime
    leaving: Sequence[Workload] = ()


@dataclass(frozen=True, slots=True)
class EditPreview:
    """``plan`` has who moves, ``shares`` the queues of each class. None of them where there is nothing to
    plan: then ``why`` says so, or ``faults`` what to mend first."""

    plan: ReadablePreview | None = None
    shares: Sequence[tuple[str, Sequence[ShareRow]]] = ()
    lowered: Sequence[LoweredQuota] = ()
    ends: datetime | None = None
    replay: Replay | None = None
    refused: ServiceError | None = None
    """Why the last days are not lived again."""
    why: str = ""
    faults: Sequence[EditFault] = ()

    @property
    def outcome(self) -> str:
        return self.plan.outcome if self.plan and not self.plan.fault else ""


def planned(cluster: Cluster, cells: Sequence[QuotaCell]) -> Json:
    """As ``edits.planned``, once for what is looked at and then saved."""
    key = ("quotas", tuple((c.queue, c.gpu_class, c.field, c.value) for c in cells))
    return remembered.of(cluster, key, lambda: edits.planned(cluster, cells))


def readable(person: User, cluster: Cluster, answer: Json) -> EditPreview:
    """``kept`` as the person may read it."""
    if not answer:
        return EditPreview(why=NOTHING)
    changes = answer.get("changes")
    seen = {
        name: seen_by(person, cluster, answer, about="", gpu_class=name)
        for name in dict.fromkeys(one["gpu_class"] for one in changes or answer.get("shares", ()))
    }
    plan = next(iter(seen.values()), None) or seen_by(
        person, cluster, answer, about="", gpu_class=""
    )
    return EditPreview(
        plan, [(name, one.shares) for name, one in seen.items() if one and one.shares]
    )


def tried(person: User, cluster: Cluster, changes: Sequence[Json]) -> EditPreview:
    """What changes of queues or of the policy would do; nothing is kept. ``why`` where there are none."""
    if not changes:
        return EditPreview(why=UNPLANNED)
    try:
        return readable(person, cluster, preview(cluster, changes))
    except ServiceError as refused:
        return readable(person, cluster, fault(refused))


def with_grace(edit: EditPreview, lowered: Iterable[LoweredQuota]) -> EditPreview:
    """``told`` with who has to go when."""
    lines = edit.plan.lines if edit.plan else ()
    leaving = (line.work for line in lines if line.kind == LEAVES and line.is_late)
    mine = [work for work in leaving if work is not None]
    return replace(edit, lowered=[replace(one, leaving=_of(one, mine)) for one in lowered])


def _of(one: LoweredQuota, leaving: Sequence[Workload]) -> list[Workload]:
    """Those that run in the queue or below it."""
    return [work for work in leaving if work.queue and one.queue in work.queue.path.split("/")]


def lowered(grid: Grid, cells: Iterable[QuotaCell], start: datetime) -> list[LoweredQuota]:
    """The queues that ``cells`` give less from ``start`` on; nothing of theirs is evicted for it within the
    cluster's grace."""
    until = start + timedelta(seconds=grid.queue.cluster.lowering_grace_s)
    before = {(row.queue.name, name): v for row in grid.rows for name, v in row.values.items()}
    found: dict[tuple[str, str], LoweredQuota] = {}
    for cell in cells:
        at = (cell.queue, cell.gpu_class)
        what = _less(cell, as_typed(cell.field, before[at].get(cell.field))) if at in before else ""
        if what and (at not in found or cell.field == Field.NOMINAL):
            found[at] = LoweredQuota(*at, what, until)
    return list(found.values())


def _less(cell: QuotaCell, before: Decimal | None) -> str:
    """What is taken, in words; None is no limit. Empty where nothing is, or where it is none of what the
    grace spares."""
    if cell.field not in SPARED or cell.value is None:
        return ""
    if before is None:
        return f"bounded in what it borrows of {cell.gpu_class}"
    if before <= cell.value:
        return ""
    by = number(float(before - cell.value), 3)
    if cell.field == Field.NOMINAL:
        return f"lowered by {by} {cell.gpu_class}"
    return f"lowered in its {WORDS[cell.field]} of {cell.gpu_class} by {by}"
