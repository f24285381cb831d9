"""Why work waits: what ends the wait of each reason, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from scheduling.models import Reason


class Ends(Enum):
    """What ends a wait."""

    OTHER = "a share, a limit, others in line, somebody who decides, what is not a GPU"
    ROOM = "free GPUs where it fits"
    OWNER = "whoever submitted it, who has to change something: time alone does not"


class WaitReason(NamedTuple):
    reason: Reason
    ends: Ends
    advice: str


REASONS: Final[Sequence[WaitReason]] = (
    WaitReason(
        Reason.ABOVE_FAIR_SHARE,
        Ends.OTHER,
        "Your queue holds more than its fair share. It starts when something of the queue ends, or when "
        "others ask for less. A smaller gang, or one that may shrink, fits sooner.",
    ),
    WaitReason(
        Reason.WAITS_FOR_QUOTA,
        Ends.OTHER,
        "With this gang your queue would pass its fair share. Fewer GPUs may fit inside it.",
    ),
    WaitReason(
        Reason.AT_LIMIT,
        Ends.OTHER,
        "Your queue, or one above it, is at nominal plus borrowing limit. Only its own work that ends, or a "
        "higher limit, makes room.",
    ),
    WaitReason(
        Reason.NON_PREEMPTIBLE_OVER_NOMINAL,
        Ends.OTHER,
        "Work that can't be preempted runs only inside the nominal quota. A preemptible priority class may "
        "borrow.",
    ),
    WaitReason(
        Reason.WAITS_FOR_TURN, Ends.OTHER, "Others of your queue go first. Nothing to do but wait."
    ),
    WaitReason(
        Reason.NO_FREE_GPUS,
        Ends.ROOM,
        "You are entitled to it, but too few GPUs are free. Another GPU class may have some.",
    ),
    WaitReason(
        Reason.NO_ROOM_ON_ITS_NODES,
        Ends.ROOM,
        "Its node selector, node affinity, tolerations, runtime class, devices, volumes or pods that it is "
        "to be near or apart from keep it to nodes that are full. Others may be free: ask for less of where "
        "it runs.",
    ),
    WaitReason(
        Reason.FRAGMENTED,
        Ends.ROOM,
        "Enough GPUs are free, but on too many nodes. Members that ask for fewer GPUs each fit sooner.",
    ),
    WaitReason(
        Reason.NO_ROOM_IN_TOPOLOGY,
        Ends.ROOM,
        "Enough are free, but not inside one of the domains you require. Prefer the domain instead of "
        "requiring it.",
    ),
    WaitReason(
        Reason.NO_ROOM_FOR_SEGMENTS,
        Ends.ROOM,
        "Enough are free, but too few of its segments find a domain of their own that has room. Smaller "
        "segments fit sooner; preferring the level instead of requiring it keeps nobody waiting.",
    ),
    WaitReason(
        Reason.NO_FREE_CPUS,
        Ends.OTHER,
        "The nodes with free GPUs have too few free CPUs. Ask for fewer CPUs.",
    ),
    WaitReason(
        Reason.NO_FREE_MEMORY,
        Ends.OTHER,
        "The nodes with free GPUs have too little memory. Ask for less.",
    ),
    WaitReason(
        Reason.NO_FREE_OTHER,
        Ends.OTHER,
        "The nodes with free GPUs lack something else that each pod takes, which the sentence names: a "
        "device, local storage, a host port, a place for a pod or apart from others. Ask for less of it.",
    ),
    WaitReason(
        Reason.RESERVED_FOR_OTHER,
        Ends.ROOM,
        "Free GPUs are kept for a gang that has waited longer. Work with a short run-time limit may go in "
        "between.",
    ),
    WaitReason(
        Reason.KEPT_FOR_SHORT,
        Ends.ROOM,
        "The last free GPUs are kept for short work. It starts when more are free, or when it falls behind "
        "what its own quota would give it.",
    ),
    WaitReason(
        Reason.AWAITS_VICTIMS,
        Ends.OTHER,
        "GPUs were taken back for it; it starts when their pods have stopped.",
    ),
    WaitReason(Reason.RESERVED, Ends.ROOM, "It is next: what comes free is kept for it."),
    WaitReason(
        Reason.VICTIMS_PROTECTED,
        Ends.OTHER,
        "You are entitled to GPUs that others hold, and they may not be taken yet. The sentence says "
        "until when.",
    ),
    WaitReason(
        Reason.BUDGET_SPENT,
        Ends.OTHER,
        "So much was evicted from those queues lately that no more may leave for now.",
    ),
    WaitReason(
        Reason.EVICTION_CAP, Ends.OTHER, "More would have to leave for it than it asks for allows."
    ),
    WaitReason(Reason.HOURS_SPENT, Ends.OTHER, "The queue's GPU-hours of this month are used up."),
    WaitReason(
        Reason.QUEUE_AT_JOB_LIMIT, Ends.OTHER, "The queue may run no more workloads at once."
    ),
    WaitReason(
        Reason.USER_AT_LIMIT,
        Ends.OTHER,
        "You run or hold as much as one person may in this queue, or as your persona lets you at once.",
    ),
    WaitReason(Reason.HELD, Ends.OTHER, "Somebody put it on hold. Release it."),
    WaitReason(
        Reason.NODES_OUT,
        Ends.ROOM,
        "It starts once enough of the nodes that are out take work again. Operators see why on the page of "
        "nodes. Another GPU class may have room.",
    ),
    WaitReason(
        Reason.NEVER_FITS,
        Ends.OWNER,
        "No node and no limit could ever hold it. Clone it with fewer GPUs, or for another class.",
    ),
    WaitReason(
        Reason.MISROUTED, Ends.OWNER, "Its label names no queue. Submit it with a label that does."
    ),
    WaitReason(
        Reason.NO_SUCH_CLASS, Ends.OWNER, "It asks for a GPU class that the cluster does not have."
    ),
    WaitReason(Reason.NOT_ALLOWED, Ends.OWNER, "Your persona does not allow what it asks for."),
    WaitReason(
        Reason.GANG_INCOMPLETE,
        Ends.OWNER,
        "Not all pods of the gang exist yet. Create the missing ones.",
    ),
    WaitReason(
        Reason.NOT_BEFORE,
        Ends.OWNER,
        "Its author asked for a later time. Change that to have it start sooner.",
    ),
    WaitReason(
        Reason.AFTER_OTHERS,
        Ends.OWNER,
        "Its author has it start after other work. Change what it waits for to have it start sooner.",
    ),
    WaitReason(
        Reason.ARRAY_AT_LIMIT,
        Ends.OWNER,
        "So many members of its array run as may at once. Change how many that is.",
    ),
)


def ended_by(ends: Ends) -> frozenset[str]:
    """Codes of the reasons whose wait that ends."""
    return frozenset(row.reason.value for row in REASONS if row.ends is ends)
