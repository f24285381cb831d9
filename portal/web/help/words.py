"""The words of the field, and what can be done about each reason of waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scheduling.models import Reason

WORDS: Final[Sequence[tuple[str, str]]] = (
    ("Team", "People. Every team is bound to one queue."),
    (
        "Persona",
        "A named bundle of what a member may do (submit, edit quotas, approve, operate, read costs) and of "
        "the class of service of what they submit.",
    ),
    (
        "Queue",
        "A node of the quota tree. The lowest hold workloads; those above share what is spare among the "
        "queues below them.",
    ),
    ("GPU class", "GPUs that can stand for each other. Quotas, shares and prices are per class."),
    (
        "Slice",
        "A part of a GPU that was cut by MIG, with a class of its own. Where classes are added up, seven "
        "slices of 1g are one GPU.",
    ),
    ("Nominal quota", "What a queue is guaranteed of a class."),
    ("Borrowing limit", "The most that a queue may hold above its nominal quota."),
    ("Lending limit", "The most of its idle nominal quota that others may use."),
    ("Kept back", "Idle nominal quota that the lending limit keeps from others."),
    (
        "Over-quota weight",
        "The ratio in which spare GPUs are split. With weight 0 a queue gets nothing above nominal.",
    ),
    ("Fair share", "What the division entitles a queue to now."),
    ("Potential share", "What it would be entitled to if it asked for everything."),
    ("Workload", "What is admitted as one: a gang of pods between its least and its most members."),
    (
        "Priority class",
        "How important a workload is inside its queue, whether it may be preempted, and how long it runs "
        "undisturbed first.",
    ),
    ("Demand, allocated, usage", "Asked for; held now; held over time, in GPU-hours."),
    ("Pending", "Waits for its first admission."),
    ("Admitted", "Has its GPUs; its pods are not all running yet."),
    ("Requeued", "Was evicted and waits again. It keeps its submit time."),
    ("Reclaim", "To take lent GPUs back, from a queue above its fair share."),
    ("Preempt", "To displace lower priority inside one queue."),
    (
        "Evict",
        "What is done to the victim of either: its pods are told to stop, and it waits again.",
    ),
    (
        "Checkpoint",
        "The state a run has saved. What came after the last one is lost in an eviction.",
    ),
    ("Cycle", "One pass of the engine. It reads everything, decides, and writes down why."),
    ("Reason", "Why a decision fell as it did: one code, its figures, and a sentence."),
    ("Fragmentation", "Free GPUs that what waits, or what usually runs, cannot use."),
    ("Topology domain", "Block, rack or node: what is close together."),
    ("P50, P90", "Half of all cases are below P50, nine of ten below P90."),
)

REASONS: Final[Sequence[tuple[Reason, str]]] = (
    (
        Reason.ABOVE_FAIR_SHARE,
        "Your queue holds more than its fair share. It starts when something of the queue ends, or when "
        "others ask for less. A smaller gang, or one that may shrink, fits sooner.",
    ),
    (
        Reason.WAITS_FOR_QUOTA,
        "With this gang your queue would pass its fair share. Fewer GPUs may fit inside it.",
    ),
    (
        Reason.AT_LIMIT,
        "Your queue, or one above it, is at nominal plus borrowing limit. Only its own work that ends, or a "
        "higher limit, makes room.",
    ),
    (
        Reason.NON_PREEMPTIBLE_OVER_NOMINAL,
        "Work that can't be preempted runs only inside the nominal quota. A preemptible priority class may "
        "borrow.",
    ),
    (Reason.WAITS_FOR_TURN, "Others of your queue go first. Nothing to do but wait."),
    (
        Reason.NO_FREE_GPUS,
        "You are entitled to it, but too few GPUs are free. Another GPU class may have some.",
    ),
    (
        Reason.NO_ROOM_ON_ITS_NODES,
        "Its node selector, node affinity, tolerations or runtime class keep it to nodes that are full. "
        "Others may be free: ask for less of where it runs.",
    ),
    (
        Reason.FRAGMENTED,
        "Enough GPUs are free, but on too many nodes. Members that ask for fewer GPUs each fit sooner.",
    ),
    (
        Reason.NO_ROOM_IN_TOPOLOGY,
        "Enough are free, but not inside one of the domains you require. Prefer the domain instead of "
        "requiring it.",
    ),
    (Reason.NO_FREE_CPUS, "The nodes with free GPUs have too few free CPUs. Ask for fewer CPUs."),
    (Reason.NO_FREE_MEMORY, "The nodes with free GPUs have too little memory. Ask for less."),
    (
        Reason.RESERVED_FOR_OTHER,
        "Free GPUs are kept for a gang that has waited longer. Work with a short run-time limit may go in "
        "between.",
    ),
    (Reason.AWAITS_VICTIMS, "GPUs were taken back for it; it starts when their pods have stopped."),
    (Reason.RESERVED, "It is next: what comes free is kept for it."),
    (
        Reason.VICTIMS_PROTECTED,
        "You are entitled to GPUs that others hold, and they may not be taken yet. The sentence says "
        "until when.",
    ),
    (
        Reason.BUDGET_SPENT,
        "So much was evicted from those queues lately that no more may leave for now.",
    ),
    (Reason.EVICTION_CAP, "More would have to leave for it than it asks for allows."),
    (Reason.HOURS_SPENT, "The queue's GPU-hours of this month are used up."),
    (Reason.QUEUE_AT_JOB_LIMIT, "The queue may run no more workloads at once."),
    (Reason.USER_AT_LIMIT, "You run or hold as much as one person may in this queue."),
    (Reason.HELD, "Somebody put it on hold. Release it."),
    (
        Reason.NEVER_FITS,
        "No node and no limit could ever hold it. Clone it with fewer GPUs, or for another class.",
    ),
    (Reason.MISROUTED, "Its label names no queue. Submit it with a label that does."),
    (Reason.NO_SUCH_CLASS, "It asks for a GPU class that the cluster does not have."),
    (Reason.NOT_ALLOWED, "Your persona does not allow what it asks for."),
    (Reason.GANG_INCOMPLETE, "Not all pods of the gang exist yet. Create the missing ones."),
)
