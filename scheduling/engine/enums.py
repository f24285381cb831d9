"""What things are called: the kinds, states, acts and reasons of the engine's values."""

from __future__ import annotations

from enum import StrEnum


class Stop(StrEnum):
    """Stop policy of a queue."""

    NONE = "none"
    HOLD = "hold"
    """Nothing new is admitted; what runs goes on."""
    DRAIN = "drain"
    """Nothing new is admitted and what runs is evicted."""


class Sharing(StrEnum):
    """By what rule a subtree gives out among its leaves what is above nominal."""

    FAIR_SHARE = "fair_share"
    """By weight."""
    PROMISE = "promise"
    """Nothing ends later than on its own quota: late work goes first, and may evict for it."""
    THROUGHPUT = "throughput"
    """Shortest expected work first, which may evict what would run far longer."""


class WorkloadType(StrEnum):
    TRAINING = "training"
    INFERENCE = "inference"
    INTERACTIVE = "interactive"


class Phase(StrEnum):
    """What the engine needs to know of a workload's state: it waits or it holds GPUs."""

    PENDING = "pending"
    RUNNING = "running"


class Action(StrEnum):
    ADMIT = "admit"
    EVICT = "evict"
    GROW = "grow"
    SHRINK = "shrink"
    MOVE = "move"
    RESERVE = "reserve"
    WAIT = "wait"
    LAPSE = "lapse"
    """A claim ends; what becomes of its workload a line of its own says."""


class Outage(StrEnum):
    """Why an installed node takes no work."""

    CORDONED = "cordoned"
    NOT_READY = "not_ready"
    TAINTED = "tainted"
    NO_GPUS = "no_gpus"
    GONE = "gone"
    """It is installed no more; work there still holds its seats."""


class Reason(StrEnum):
    """Why a decision was taken. Every value has one sentence in ``reasons``."""

    # admit
    FITS_NOMINAL = "fits_nominal"
    BORROWS = "borrows"
    # evict
    RECLAIMED = "reclaimed"
    PREEMPTED = "preempted"
    GIVES_WAY = "gives_way"
    STALE_GANG = "stale_gang"
    DRAINED = "drained"
    # reserve
    AWAITS_VICTIMS = "awaits_victims"
    RESERVED = "reserved"
    # lapse
    CLAIM_LAPSED = "claim_lapsed"
    # grow, shrink, move
    GROWS = "grows"
    SHRINKS = "shrinks"
    CONSOLIDATES = "consolidates"
    # wait
    NEVER_FITS = "never_fits"
    NODES_OUT = "nodes_out"
    AT_LIMIT = "at_limit"
    HOURS_SPENT = "hours_spent"
    QUEUE_AT_JOB_LIMIT = "queue_at_job_limit"
    USER_AT_LIMIT = "user_at_limit"
    ABOVE_FAIR_SHARE = "above_fair_share"
    NON_PREEMPTIBLE_OVER_NOMINAL = "non_preemptible_over_nominal"
    WAITS_FOR_QUOTA = "waits_for_quota"
    WAITS_FOR_TURN = "waits_for_turn"
    NO_ROOM_IN_TOPOLOGY = "no_room_in_topology"
    NO_ROOM_FOR_SEGMENTS = "no_room_for_segments"
    FRAGMENTED = "fragmented"
    NO_FREE_GPUS = "no_free_gpus"
    NO_FREE_CPUS = "no_free_cpus"
    NO_FREE_MEMORY = "no_free_memory"
    NO_FREE_OTHER = "no_free_other"
    NO_ROOM_ON_ITS_NODES = "no_room_on_its_nodes"
    RESERVED_FOR_OTHER = "reserved_for_other"
    KEPT_FOR_SHORT = "kept_for_short"
    VICTIMS_PROTECTED = "victims_protected"
    BUDGET_SPENT = "budget_spent"
    EVICTION_CAP = "eviction_cap"
    GANG_INCOMPLETE = "gang_incomplete"
    HELD = "held"
    MISROUTED = "misrouted"
    NO_SUCH_CLASS = "no_such_class"
    NOT_ALLOWED = "not_allowed"
    RUN_TIME_OVER = "run_time_over"
    NOT_BEFORE = "not_before"
    AFTER_OTHERS = "after_others"
    ARRAY_AT_LIMIT = "array_at_limit"


class Rule(StrEnum):
    """Which rule let a workload be evicted, shrunk or moved; ``reasons.rules`` has a sentence for each."""

    ABOVE_FAIR_SHARE = "above_fair_share"
    OWED_NOMINAL = "owed_nominal"
    """A gang that lies partly inside its queue's share, for work inside its own nominal."""
    LENT_NOMINAL = "lent_nominal"
    """What lies above nominal, though inside the share, for work inside its own nominal."""
    ROUNDED = "rounded"
    """For a gang that passes its share by a part of itself."""
    REGAINED = "regained"
    """Members, for an elastic gang that grows inside its nominal."""
    LOWER_PRIORITY = "lower_priority"
    GIVES_WAY = "gives_way"
    MOVED = "moved"
    STALE_GANG = "stale_gang"
    DRAINED = "drained"


class Lapse(StrEnum):
    """Why a claim ends though its workload has not started."""

    SEATS_GONE = "seats_gone"
    """Its nodes went, shrank or were taken by pods outside the queues; or it asks for something else."""
    TAKEN_AWAY = "taken_away"
    """People lowered a limit or nominal, its hours are spent, or it or its queue is held or drained."""
    OVERDUE = "overdue"
    """The policy's ``claim_hold_s`` have passed since its room was due."""


class StepKind(StrEnum):
    """Parts of a fair share, in the order in which the division takes them."""

    NOMINAL = "nominal"
    LENT = "lent"
    """Idle nominal that others may use."""
    KEPT_BACK = "kept_back"
    """Idle nominal that the lending limit withholds."""
    RATIONED = "rationed"
    """What the guarantee lacks because its siblings' guarantees exceed what there is."""
    SPARE = "spare"
    """Its part of the spare of its tier."""
    REMAINDER = "remainder"
    """Its part, by weight alone, of what those with a pull of their own left."""
