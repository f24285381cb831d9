"""Work that its author has wait: for the end of other work, and behind members of its own array.

Other work is of the same namespace and queue: whoever reads of the one may read of the other, and a name
tells nobody what runs elsewhere. Of several objects of one name the last that there was counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from scheduling.cluster.adapters import Sighting
from scheduling.engine import model as m
from scheduling.models import Cluster, State, Workload
from scheduling.services.snapshot.at_once import Found
from scheduling.services.snapshot.obstacles import Obstacle
from scheduling.services.snapshot.situations import Situation, WorkloadFacts
from scheduling.services.workloads.turns import REMEDY, full, is_circle, last_of, still_to_come

Rows = Mapping[str, Workload]
"""By engine name."""


@dataclass(slots=True)
class Others:
    """Rows of work that other work starts after. What has ended is read once while somebody waits for it."""

    cluster: Cluster
    _ended: dict[str, Workload] = field(default_factory=dict)

    def late(
        self, workloads: Sequence[Sighting], known: Mapping[str, WorkloadFacts], live: Rows
    ) -> Found:
        """Those of ``workloads``, all that have a turn, whose turn has not come; ``live`` has what has not
        ended."""
        if not workloads:
            return []
        return not_their_turn(workloads, known, self.of(workloads, live))

    def of(self, waits: Iterable[Sighting], live: Rows) -> Rows:
        """Those that ``waits`` name, as far as there are or were any."""
        wanted = {one.key_in(o.namespace) for o in waits for one in o.turn.after}
        found = {key: live[key] for key in wanted if key in live}
        found |= {key: self._ended[key] for key in wanted - found.keys() if key in self._ended}
        if missing := sorted(wanted - found.keys()):
            found |= last_of(self.cluster, missing)
        # The row of one that ends in this very cycle is not written yet.
        self._ended = {key: row for key, row in found.items() if row.state == State.FINISHED}
        return found


def not_their_turn(
    workloads: Sequence[Sighting], known: Mapping[str, WorkloadFacts], others: Rows
) -> Found:
    """Those of ``workloads`` that wait, could start otherwise, and whose turn has not come, with the cause.

    ``workloads`` are all that have a turn, those included that hold GPUs.
    """
    waits = [o for o in workloads if _may_start(o, known.get(o.uid))]
    names = {o.key: [one.key_in(o.namespace) for one in o.turn.after] for o in waits}
    found: Found = []
    for observed in waits:
        if why := _after(observed, others, names):
            found.append((observed, why))
    stopped = {observed.uid for observed, _ in found}
    return found + _beyond(workloads, [o for o in waits if o.uid not in stopped], known)


def _may_start(observed: Sighting, known: WorkloadFacts | None) -> bool:
    if known is None or known.situation is not Situation.WAITING or known.blocked is not None:
        return False
    return not (observed.is_held or observed.deleting)


def _after(observed: Sighting, others: Rows, names: Mapping[str, Sequence[str]]) -> Obstacle | None:
    """What of the work that it starts after has not ended as it must; None where all has."""
    if observed.turn.after and _is_circle(observed.key, names):
        said = f"It starts after work that starts after it: none of them ever would. {REMEDY}"
        return Obstacle(m.Reason.AFTER_OTHERS, said)
    for one in observed.turn.after:
        row = others.get(one.key_in(observed.namespace))
        if row is not None and row.queue_label != observed.queue_label:
            row = None
        if said := still_to_come(one, row, observed.namespace):
            return Obstacle(m.Reason.AFTER_OTHERS, said)
    return None


def _is_circle(key: str, names: Mapping[str, Sequence[str]]) -> bool:
    """Whether following ``names`` leads from ``key`` back to it."""

    def waits_for(keys: Collection[str]) -> Iterator[str]:
        return (name for one in keys for name in names.get(one, ()))

    return is_circle(key, names.get(key, ()), waits_for, count())


Array = tuple[str, str, str]


def _array_of(observed: Sighting) -> Array:
    return observed.namespace, observed.queue_label, observed.turn.array


def _beyond(
    workloads: Iterable[Sighting], waits: Iterable[Sighting], known: Mapping[str, WorkloadFacts]
) -> Found:
    """Those of ``waits`` whose array holds as much as it may, those before them in line counted with it."""
    counts: dict[Array, int] = {}
    for observed in _holding(workloads, known):
        counts[_array_of(observed)] = counts.get(_array_of(observed), 0) + 1
    found: Found = []
    for observed in sorted(waits, key=lambda o: (o.turn.index, o.created, o.key)):
        most, array = observed.turn.at_once, _array_of(observed)
        if not observed.turn.array:
            continue
        taken = counts.get(array, 0)
        if most is not None and taken >= most:
            found.append((observed, Obstacle(m.Reason.ARRAY_AT_LIMIT, full(observed.turn))))
        else:
            counts[array] = taken + 1
    return found


def _holding(
    workloads: Iterable[Sighting], known: Mapping[str, WorkloadFacts]
) -> Iterator[Sighting]:
    at_rest = (Situation.WAITING, Situation.DONE)
    for observed in workloads:
        what = known.get(observed.uid)
        if observed.turn.array and what is not None and what.situation not in at_rest:
            yield observed
