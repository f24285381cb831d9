"""What edits of the grid would do, planned on the live cluster before they are saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from portal.accounts.models import User
from portal.approvals.previews import Seen, ShareRow, fault, seen_by
from portal.web.lab import drafts
from portal.web.requests.page import outcome, outcome_of
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.quotas.faults import QuotaCell
from scheduling.services.quotas.save import Fault
from scheduling.services.whatif.preview import LEAVES, STARTS, WAITS, preview

Json = dict[str, Any]
NOTHING = "A budget of GPU-hours starts and stops nobody by itself."


@dataclass(frozen=True, slots=True)
class Told:
    """``plan`` has who moves, ``shares`` the queues of each class, ``outcome`` all in a sentence. None of
    them where there is nothing to plan: then ``why`` says so, or ``faults`` what to mend first."""

    plan: Seen | None = None
    shares: Sequence[tuple[str, Sequence[ShareRow]]] = ()
    outcome: str = ""
    why: str = ""
    faults: Sequence[Fault] = ()


def planned(cluster: Cluster, cells: Iterable[QuotaCell]) -> Json:
    """Everything that the edit would do if it held from now on, to be kept; where it can't be planned, the
    sentence that says why; empty where it decides nothing."""
    changes = drafts.changes_of(cells)
    if not changes:
        return {}
    try:
        return {**preview(cluster, changes), "changes": changes}
    except ServiceError as refused:
        return fault(refused)


def told(person: User, cluster: Cluster, kept: Json) -> Told:
    """``kept`` as the person may read it."""
    if not kept:
        return Told(why=NOTHING)
    changes = kept.get("changes", ())
    seen = {
        name: seen_by(person, cluster, kept, about="", gpu_class=name)
        for name in dict.fromkeys(change["gpu_class"] for change in changes)
    }
    plan = next(iter(seen.values()), None) or seen_by(person, cluster, kept, about="", gpu_class="")
    shares = [(name, one.shares) for name, one in seen.items() if one and one.shares]
    return Told(plan, shares, outcome(plan) if plan and not plan.fault else "")


def expectation(kept: Json) -> str:
    """What was expected of a saved edit, in numbers; empty where nothing was planned."""
    if "lines" not in kept:
        return ""
    kinds = [line["kind"] for line in kept["lines"]]
    return outcome_of(*(kinds.count(kind) for kind in (STARTS, LEAVES, WAITS)))
