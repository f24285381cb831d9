"""What waits as the engine knows it: most of it is the same from one snapshot of a cluster to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress
from operator import is_not

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.picture.compose import Picture
from scheduling.cluster.picture.node_sets import NodeSets
from scheduling.engine import model as m
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.situations import WorkloadFacts


class PendingValues:
    """The engine's values of what waits, kept from snapshot to snapshot while nothing of it changes."""

    def __init__(self) -> None:
        self._names: tuple[object, ...] = ()
        self._known: dict[str, WorkloadFacts] = {}
        """What was known of those in ``works``. It is made anew for whatever is seen otherwise."""
        self.works: dict[str, m.Workload] = {}
        """By uid, once ``sift`` has been called for the snapshot."""
        self.node_sets = NodeSets()
        self.has_supposed = False
        """Some were planned while their start was on its way. It stays so: each change of the list of
        priority classes has the engine read all of them anew."""

    def sift(
        self, rows: PolicyRows, picture: Picture, known: Mapping[str, WorkloadFacts]
    ) -> list[Sighting]:
        """Begin a snapshot: the workloads that are not in ``works`` as they are now. All have to be made
        anew when the priority classes or the levels of topology changed."""
        names = (
            rows.cluster.topology_levels,
            *((p.name, p.is_default) for p in rows.priority_classes),
        )
        if names != self._names:
            self._forget(list(self.works))
        self._names = names
        # Thousands, of which a few changed: this goes through them without a line of Python for each.
        uids = picture.by_uid.keys()
        differs = map(is_not, map(self._known.get, uids), map(known.get, uids))
        changed = list(compress(picture.workloads, differs))
        self._forget(self._known.keys() - uids)
        self._forget(o.uid for o in changed)
        return changed

    def keep(self, observed: Sighting, known: WorkloadFacts, made: m.Workload) -> None:
        self._known[observed.uid], self.works[observed.uid] = known, made

    def drop(self, uids: Iterable[str]) -> None:
        """Have those made anew: what is predicted of them has changed."""
        self._forget(uids)

    def _forget(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._known.pop(uid, None)
            self.works.pop(uid, None)
