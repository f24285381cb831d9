"""How a workload stands against the quota of its queue alone, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.display.format import duration
from scheduling.models import State, Workload, headline
from scheduling.services.queues.leads import is_waiting_alone, standing

EVEN_S = 60.0
"""Less than that is neither ahead nor behind."""
LEAST_PACE = 0.05
"""Classes that differ by less are taken to be as fast."""


@dataclass(frozen=True, slots=True)
class AheadOfQuota:
    """``text`` is ahead or behind by how much, ``why`` the sentence after it."""

    text: str
    why: str
    is_behind: bool = False


def standing_of(work: Workload, now: datetime) -> AheadOfQuota | None:
    """None where it is not known: before the first cycle, and of work that nobody played along."""
    lead = standing(work, now)
    if lead is None:
        return _not_begun(work)
    if abs(lead) < EVEN_S:
        return AheadOfQuota(
            "As on its own quota", "It started when its queue's quota alone would have let it."
        )
    if lead > 0:
        return AheadOfQuota(f"{duration(lead)} ahead of its own quota", _ahead(work))
    return AheadOfQuota(f"{duration(-lead)} behind its own quota", _behind(work), is_behind=True)


def _not_begun(work: Workload) -> AheadOfQuota | None:
    if not is_waiting_alone(work):
        return None
    if work.state == State.RUNNING:
        return AheadOfQuota(
            "Ahead of its own quota",
            "With nothing but its queue's nominal quota it would still wait.",
        )
    return AheadOfQuota(
        "Not behind", "With nothing but its queue's nominal quota it would wait as well."
    )


def _ahead(work: Workload) -> str:
    if work.is_waiting:
        return "Earlier runs did more than its queue's quota alone would have let it do by now."
    if _is_other_pace(work):
        return f"{_alone(work)} Counted is how far it is by now."
    return "On GPUs that others lent it started that much earlier than on its queue's quota alone."


def _behind(work: Workload) -> str:
    if work.eviction_count:
        times = "once" if work.eviction_count == 1 else f"{work.eviction_count} times"
        return f"It was evicted {times}; on its queue's quota alone it would have gone on."
    if work.is_waiting and work.reason:
        return f"On its queue's quota alone it would run by now. It waits: {headline(work.reason).lower()}."
    if _is_other_pace(work):
        return f"{_alone(work)} Counted is how far it is by now."
    return "On its queue's quota alone it would have started earlier."


def _is_other_pace(work: Workload) -> bool:
    return abs(work.own_pace - 1) >= LEAST_PACE


def _alone(work: Workload) -> str:
    """Where it would run on its queue's quota alone, and how that class compares."""
    longer = work.own_pace > 1
    times = work.own_pace if longer else 1 / work.own_pace
    return (
        f"On its queue's quota alone it would run on {work.class_on_own_quota}, "
        f"where such runs end {times:.1f} times as {'late' if longer else 'soon'}."
    )
