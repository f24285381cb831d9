"""What would start a workload of a cluster now, by the plan that runs the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduling.cluster.adapters import key_of
from scheduling.engine.whatif.change import Reach
from scheduling.engine.whatif.relaxations import relaxations
from scheduling.models import Workload
from scheduling.services.explain.documents import relaxation_document
from scheduling.services.snapshot.asked import live_or_refused

Json = dict[str, Any]


def what_would_start(
    workload: Workload, *, queues: Sequence[str], priority_classes: Sequence[str]
) -> list[Json]:
    """The changes of one input that would start ``workload`` now, cheapest first.

    Read from the cluster as it is; ``queues`` and ``priority_classes`` are those the person who asks
    may choose. Raises ServiceError when the cluster does not answer.
    """
    snapshot = live_or_refused(workload.cluster, "Ask again in a moment.")
    name = key_of(workload.kind, workload.namespace, workload.name)
    if all(w.name != name for w in snapshot.workloads):
        return []
    known, classes = {q.name for q in snapshot.queues}, {p.name for p in snapshot.priority_classes}
    reach = Reach(
        [queue for queue in queues if queue in known],
        [kind for kind in priority_classes if kind in classes],
    )
    return [relaxation_document(found) for found in relaxations(snapshot, name, reach)]
