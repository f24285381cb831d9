"""Numbers of actions, reasons and stops inside the kernels; the enums of ``model`` outside."""

from __future__ import annotations

from scheduling.engine.enums import Lapse, Rule
from scheduling.engine.model import Action, Reason, Sharing, Stop

ACTIONS: tuple[Action, ...] = tuple(Action)
REASONS: tuple[Reason, ...] = tuple(Reason)
STOPS: tuple[Stop, ...] = (Stop.NONE, Stop.HOLD, Stop.DRAIN)
"""The laxest first: of a queue and all above it the strictest counts."""
RULES: tuple[Rule, ...] = tuple(Rule)
LAPSES: tuple[Lapse, ...] = tuple(Lapse)
SEATS_GONE, TAKEN_AWAY, OVERDUE = range(3)
SHARINGS: tuple[Sharing, ...] = tuple(Sharing)
FAIR, PROMISE, THROUGHPUT = range(3)
DRAINS = STOPS.index(Stop.DRAIN)

UNDECIDED = -1


def _action(action: Action) -> int:
    return ACTIONS.index(action)


def _reason(reason: Reason) -> int:
    return REASONS.index(reason)


def _rule(rule: Rule) -> int:
    return RULES.index(rule)


ADMIT = _action(Action.ADMIT)
EVICT = _action(Action.EVICT)
GROW = _action(Action.GROW)
RESERVE = _action(Action.RESERVE)
MOVE = _action(Action.MOVE)
SHRINK = _action(Action.SHRINK)
WAIT = _action(Action.WAIT)

FITS_NOMINAL = _reason(Reason.FITS_NOMINAL)
BORROWS = _reason(Reason.BORROWS)
RECLAIMED = _reason(Reason.RECLAIMED)
PREEMPTED = _reason(Reason.PREEMPTED)
GIVES_WAY = _reason(Reason.GIVES_WAY)
STALE_GANG = _reason(Reason.STALE_GANG)
DRAINED = _reason(Reason.DRAINED)
GROWS = _reason(Reason.GROWS)
CONSOLIDATES = _reason(Reason.CONSOLIDATES)
SHRINKS = _reason(Reason.SHRINKS)
AWAITS_VICTIMS = _reason(Reason.AWAITS_VICTIMS)
RESERVED = _reason(Reason.RESERVED)
NEVER_FITS = _reason(Reason.NEVER_FITS)
NODES_OUT = _reason(Reason.NODES_OUT)
AT_LIMIT = _reason(Reason.AT_LIMIT)
HOURS_SPENT = _reason(Reason.HOURS_SPENT)
QUEUE_AT_JOB_LIMIT = _reason(Reason.QUEUE_AT_JOB_LIMIT)
USER_AT_LIMIT = _reason(Reason.USER_AT_LIMIT)
ABOVE_FAIR_SHARE = _reason(Reason.ABOVE_FAIR_SHARE)
NON_PREEMPTIBLE = _reason(Reason.NON_PREEMPTIBLE_OVER_NOMINAL)
WAITS_FOR_QUOTA = _reason(Reason.WAITS_FOR_QUOTA)
WAITS_FOR_TURN = _reason(Reason.WAITS_FOR_TURN)
NO_ROOM_IN_TOPOLOGY = _reason(Reason.NO_ROOM_IN_TOPOLOGY)
NO_ROOM_FOR_SEGMENTS = _reason(Reason.NO_ROOM_FOR_SEGMENTS)
FRAGMENTED = _reason(Reason.FRAGMENTED)
NO_FREE_GPUS = _reason(Reason.NO_FREE_GPUS)
NO_FREE_CPUS = _reason(Reason.NO_FREE_CPUS)
NO_FREE_MEMORY = _reason(Reason.NO_FREE_MEMORY)
NO_FREE_OTHER = _reason(Reason.NO_FREE_OTHER)
NO_ROOM_ON_ITS_NODES = _reason(Reason.NO_ROOM_ON_ITS_NODES)
RESERVED_FOR_OTHER = _reason(Reason.RESERVED_FOR_OTHER)
KEPT_FOR_SHORT = _reason(Reason.KEPT_FOR_SHORT)
VICTIMS_PROTECTED = _reason(Reason.VICTIMS_PROTECTED)
BUDGET_SPENT = _reason(Reason.BUDGET_SPENT)
EVICTION_CAP = _reason(Reason.EVICTION_CAP)
HELD = _reason(Reason.HELD)
MISROUTED = _reason(Reason.MISROUTED)
NO_SUCH_CLASS = _reason(Reason.NO_SUCH_CLASS)

ABOVE_SHARE = _rule(Rule.ABOVE_FAIR_SHARE)
OWED_NOMINAL = _rule(Rule.OWED_NOMINAL)
LENT_NOMINAL = _rule(Rule.LENT_NOMINAL)
ROUNDED_UP = _rule(Rule.ROUNDED)
REGAINED = _rule(Rule.REGAINED)
LOWER_PRIORITY = _rule(Rule.LOWER_PRIORITY)
BY_MERIT = _rule(Rule.GIVES_WAY)
MOVED = _rule(Rule.MOVED)
STALE = _rule(Rule.STALE_GANG)
DRAINING = _rule(Rule.DRAINED)
