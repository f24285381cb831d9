"""The page of learned orders: what was found, what it lacks, and what becomes of it by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.web.learned import drawing, tables
from portal.web.learned.differing import Differing, differing
from scheduling.models import (
    Cluster,
    LearnedOrder,
    LearnedState,
    LearnedStep,
    Queue,
)
from scheduling.services.errors import ServiceError
from scheduling.services.learned import states, training
from scheduling.services.learned.verdicts import BETTER, SHADOW, Condition, conditions, standing
from scheduling.services.learned.working import progress
from scheduling.services.policy.sharing import leaves_by_merit

LISTED = 12
TRIED = (LearnedState.TRAINING, LearnedState.JUDGED, LearnedState.SHADOW)
HEAVY = ("world", "work")
NO_MERIT = ServiceError(
    "nothing_by_merit",
    "No queue gives out by promise or by throughput what is above nominal, and weights order nothing"
    " elsewhere.",
    "Let a queue share so.",
)


@dataclass(frozen=True, slots=True)
class Page:
    """``shown`` is the version that the page tells of: the one asked for, else the one that is tried, else
    who decides, else the newest."""

    shown: LearnedOrder | None
    deciding: LearnedOrder | None
    versions: Sequence[LearnedOrder]
    hand: str
    finding: tuple[str, str]
    lacking: ServiceError | None
    conditions: Sequence[Condition]
    state: drawing.StateLine | None
    verdicts: tables.Verdicts | None
    former: LearnedOrder | None
    groups: Sequence[drawing.Group]
    differing: Differing | None
    progress: int | None
    gone: LearnedOrder | None
    """The last one that went, to say why."""
    may_from: datetime | None

    @property
    def weight_count(self) -> int:
        return sum(len(group.weights) for group in self.groups)

    @property
    def met(self) -> int:
        return sum(one.is_met for one in self.conditions)

    @property
    def lacks(self) -> Condition | None:
        return next((one for one in self.conditions if not one.is_met), None)

    @property
    def shadow_day(self) -> int | None:
        if self.shown is None or self.shown.state != LearnedState.SHADOW:
            return None
        return (self.shown.cluster.now() - self.shown.since) // timedelta(days=1) + 1

    @property
    def shadow_days(self) -> int:
        return SHADOW.days

    @property
    def same(self) -> int:
        return self.shown.looked_at - self.shown.differed if self.shown else 0


def page(cluster: Cluster, asked: int | None = None) -> Page:
    rows = LearnedOrder.objects.filter(cluster=cluster).select_related("cluster").defer(*HEAVY)
    versions = list(rows.order_by("-version")[:LISTED])
    deciding = next((one for one in versions if one.state == LearnedState.DECIDING), None)
    shown = _shown(versions, deciding, asked)
    hand = hand_written(cluster)
    lacking = training.why_not(cluster) or (NO_MERIT if hand == "Fair share" else None)
    steps = LearnedStep.objects.filter(order__cluster=cluster).select_related("order")
    return Page(
        shown=shown,
        deciding=deciding,
        versions=versions,
        hand=hand,
        finding=_finding(cluster, shown, hand, lacking),
        lacking=lacking,
        conditions=conditions(shown, cluster) if shown and shown.verdict else [],
        state=drawing.state_line(
            list(steps.order_by("at", "id")), hand, cluster.now(), cluster.display_time_zone
        ),
        verdicts=tables.verdicts(shown) if shown else None,
        former=(former := _former(versions, shown)),
        groups=drawing.weighed(shown, former) if shown and shown.weights else [],
        differing=differing(shown) if shown and shown.looked_at else None,
        progress=progress(shown) if shown and shown.state == LearnedState.TRAINING else None,
        gone=next((one for one in versions if one.state in states.OVER), None),
        may_from=_may_from(shown),
    )


def _shown(
    versions: Sequence[LearnedOrder], deciding: LearnedOrder | None, asked: int | None
) -> LearnedOrder | None:
    if asked is not None:
        return next((one for one in versions if one.version == asked), None)
    tried = next((one for one in versions if one.state in TRIED), None)
    return tried or deciding or (versions[0] if versions else None)


def _former(versions: Sequence[LearnedOrder], shown: LearnedOrder | None) -> LearnedOrder | None:
    """The one before it that has weights."""
    if shown is None:
        return None
    return next((one for one in versions if one.version < shown.version and one.weights), None)


def hand_written(cluster: Cluster) -> str:
    """What decides where no learned order does, in the queues that give out by merit."""
    rules = set(leaves_by_merit(list(Queue.objects.filter(cluster=cluster))).values())
    return " and ".join(sorted(rule.value for rule in rules)).capitalize() or "Fair share"


def _may_from(shown: LearnedOrder | None) -> datetime | None:
    if shown is None or shown.state != LearnedState.SHADOW:
        return None
    return max(shown.since + SHADOW, shown.cluster.now())


def _finding(
    cluster: Cluster, shown: LearnedOrder | None, hand: str, lacking: ServiceError | None
) -> tuple[str, str]:
    """Bold and muted."""
    decides = f"{hand} decides."
    if shown is None:
        if lacking is not None:
            return "There is no learned order yet, and none can be trained now.", str(lacking)
        return "There is no learned order yet.", f"{decides} Train one on what came so far."
    if shown.state == LearnedState.TRAINING:
        return (
            f"{shown} is in training.",
            f"{decides} It is judged on later days before it decides anything.",
        )
    if shown.state in states.OVER:
        what = shown.get_state_display().lower()
        return f"{shown} was {what}: {_lower(shown.why)}", decides
    if shown.state == LearnedState.DECIDING:
        return (
            f"{shown} decides{_effect(shown)}.",
            "It is checked every day, and demotes itself when it drifts.",
        )
    return _in_shadow(cluster, shown)


def _lower(why: str) -> str:
    first, _, _ = why.partition(" ")
    return why if first.isupper() or first.startswith("v") else why[:1].lower() + why[1:]


def _effect(shown: LearnedOrder) -> str:
    """', better than Promise on 1 of 2 windows and worse on none', of the windows that judged it."""
    found = standing(shown.verdict)
    cells = [cell for one in shown.verdict.get("windows", []) for cell in one["against"][:1]]
    if not cells or not found.windows:
        return ""
    other = cells[0]["name"]
    if not found.better_than_now and not found.worse_than_now:
        return f", no better than {other} on any of {found.windows} windows"
    worse = found.worse_than_now or "none"
    fair = ", with fairness kept" if not found.broken else ""
    won = f"{found.better_than_now} of {found.windows} windows"
    return f", better than {other} on {won} and worse on {worse}{fair}"


def _in_shadow(cluster: Cluster, shown: LearnedOrder) -> tuple[str, str]:
    lacking = [one for one in conditions(shown, cluster) if not one.is_met]
    is_unproven = bool(lacking) and lacking[0].name == BETTER
    lacks = f"; it is not yet {BETTER}" if is_unproven else ""
    state = "judged" if shown.state == LearnedState.JUDGED else "in shadow"
    bold = f"{shown} is {state}{_effect(shown)}{lacks}."
    told = (
        f"Of the last {shown.looked_at:,} decisions it would have changed {shown.differed:,}."
        if shown.looked_at
        else "No cycle was planned again yet."
    )
    return bold, told
