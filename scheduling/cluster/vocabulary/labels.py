"""Every label and annotation that Weir reads or writes on objects of a cluster."""

from __future__ import annotations

QUEUE = "weir.dev/queue"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""Accepted as well, so that work written for Kueue needs no edit."""
PRIORITY_CLASS = "weir.dev/priority-class"
"""Label; takes the place of the pod template's priorityClassName, which cannot be edited."""

# Written by people, read by Weir (annotations).
USER = "weir.dev/user"
USER_LENGTH = 150
"""Characters of it that are kept."""
GPU_CLASSES = "weir.dev/gpu-classes"
MIN_MEMBERS = "weir.dev/min-members"
RUN_TIME_LIMIT = "weir.dev/run-time-limit"
CHECKPOINT_INTERVAL = "weir.dev/checkpoint-interval"
CHECKPOINTED_AT = "weir.dev/checkpointed-at"
PREDICTED_SECONDS = "weir.dev/predicted-seconds"
TOPOLOGY_REQUIRED = "weir.dev/topology-required"
TOPOLOGY_PREFERRED = "weir.dev/topology-preferred"
SEGMENT_SIZE = "weir.dev/segment-size"
"""So many members at a time are together in one domain of the level that one of these two names."""
SEGMENT_REQUIRED = "weir.dev/segment-required"
SEGMENT_PREFERRED = "weir.dev/segment-preferred"
TOPOLOGY = {
    "required": TOPOLOGY_REQUIRED,
    "preferred": TOPOLOGY_PREFERRED,
    "segment_size": SEGMENT_SIZE,
    "segment_required": SEGMENT_REQUIRED,
    "segment_preferred": SEGMENT_PREFERRED,
}
"""What work asks for of the cluster's topology, as its row says it -> the annotation that does."""
HOLD = "weir.dev/hold"
ON_HOLD, RUN_OVER = "true", "run-time-limit"
"""What it says: somebody holds it, or it ran for its limit and waits for its owner to decide."""
NOT_BEFORE = "weir.dev/not-before"
"""It starts no sooner than at this time (RFC 3339)."""
AFTER = "weir.dev/after"
"""Names of work that it starts after, commas between; ``:ended`` behind one whose failure will do."""
ARRAY, ARRAY_INDEX = "weir.dev/array", "weir.dev/array-index"
"""The array that it is a member of, and which."""
ARRAY_AT_ONCE = "weir.dev/array-at-once"
"""Members of it that may hold GPUs at once."""
TURN = frozenset({NOT_BEFORE, AFTER, ARRAY, ARRAY_INDEX, ARRAY_AT_ONCE})
GATE = "weir.dev/queue"
"""Scheduling gate that holds plain pods back."""
POD_GROUP = "weir.dev/pod-group"
KUEUE_POD_GROUP = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_TOTAL = "weir.dev/pod-group-total"
KUEUE_POD_GROUP_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
"""Label that pods of a group share, and annotation that says how many they are."""
REPLICAS = "weir.dev/replicas"
"""Replicas asked for by a kind without a suspend field, whose ``spec.replicas`` is 0 while it waits."""

# The mark of an admission, written and cleared in the same patch that unsuspends and suspends.
GPU_CLASS = "weir.dev/gpu-class"
PLACEMENT = "weir.dev/placement"
ADMITTED_AT = "weir.dev/admitted-at"
MARK = (GPU_CLASS, PLACEMENT, ADMITTED_AT)

GROUP_UID = "weir.dev/pod-group-uid"
"""Identity of an admitted group of plain pods: its oldest pod may go before the others."""
ORIGINAL = "weir.dev/original"
"""JSON: what admission overwrites (sizes; of each role's pods the node affinity or selector,
tolerations and resources), and the uid of the object: on a copy of it, it means nothing."""
MOVES_TO = "weir.dev/moves-to"
"""JSON, between leaving its nodes and starting again: the class and placement it moves to."""
START_FAILURES = "weir.dev/start-failures"
"""How many times in a row its pods were not all ready in time."""
RETRY_AT = "weir.dev/retry-at"
"""It waits at least until then, after a start that failed."""
START_FAULT = "weir.dev/start-fault"
"""JSON: why its last start failed, in whose words, and which nodes are left out until when."""
EVICTED_BY = "weir.dev/evicted-by"
"""Number of the cycle whose plan evicted it last."""

# Written for people to read.
REASON = "weir.dev/reason"
SENTENCE = "weir.dev/sentence"
POSITION = "weir.dev/position"
ETA = "weir.dev/eta"
"""The predicted start as an interval, P50/P90; else the earliest that the plan can name."""
STATUS = (REASON, SENTENCE, POSITION, ETA)

# On guardrails.
MANAGED = "weir.dev/managed"
"""Label of what Weir keeps on a cluster; on a namespace also: its GPU work has to name a queue."""
OFFERED = "weir.dev/offered"
"""Label by which the cluster's administrators let Weir manage a namespace that it did not make."""
APPLIED = "weir.dev/applied"
"""Digest of the manifest that was applied last."""
QUEUES = "weir.dev/queues"
"""On a namespace: the queues whose work is created in it."""
ACCOUNTS = "weir.dev/service-accounts"
"""Of a namespace: the service accounts, beside ``default``, that its work may run as; commas between."""
SECRETS = "weir.dev/secrets"
"""Of a namespace that was offered: the Secrets that its work may read; commas between."""

WRITTEN_BY_WEIR = (
    *MARK, ORIGINAL, GROUP_UID, EVICTED_BY, MOVES_TO, START_FAILURES, RETRY_AT, START_FAULT, *STATUS
)  # fmt: skip

MADE_BY_JOB = "batch.kubernetes.io/controller-uid"
"""The uid of the Job that made a pod."""
HOSTNAME = "kubernetes.io/hostname"


def queue_of(labels: dict[str, str] | None) -> str:
    """The queue that ``labels`` route to; empty when the object is none of Weir's business."""
    labels = labels or {}
    return labels.get(QUEUE) or labels.get(KUEUE_QUEUE) or ""


def pod_group_of(labels: dict[str, str]) -> str:
    """The group that ``labels`` put a pod in; empty for a pod on its own."""
    return labels.get(POD_GROUP) or labels.get(KUEUE_POD_GROUP) or ""


def offering(*namespaces: str) -> str:
    """How the cluster's administrators let Weir's engine have namespaces that stand."""
    return f"kubectl label namespace {' '.join(namespaces)} {OFFERED}=true"


def status_of(annotations: dict[str, str] | None) -> tuple[str, ...]:
    """The status as it stands on an object: the values of STATUS, empty where there is none."""
    annotations = annotations or {}
    return tuple(annotations.get(key, "") for key in STATUS)
