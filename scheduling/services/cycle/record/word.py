"""Whether a cycle knows what the plan before it left: its word to those for whom others had to go."""

from __future__ import annotations

import logging
from collections.abc import Set
from dataclasses import dataclass

from scheduling.cluster.adapters import key_of
from scheduling.engine import Action, Outline, Plan, Snapshot
from scheduling.services.cycle.project.claims import Claims
from scheduling.simulation.run.carrying import differences

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Word:
    """The last plan of a cluster and the snapshot that it was made of, while this process goes on."""

    _last: tuple[Snapshot, Plan, Set[str]] | None = None

    def give(self, snapshot: Snapshot, plan: Outline, claims: Claims, put_off: Set[str]) -> None:
        """``plan`` is committed. Nothing is kept of one that leaves nobody a claim and evicts nobody."""
        names = {key_of(row.kind, row.namespace, row.name) for row in claims.rows.values()}
        names |= {act.workload for act in plan.acts if act.action in (Action.EVICT, Action.LAPSE)}
        names -= put_off
        places = [i for i, name in enumerate(plan.waits.names) if name in names] if names else []
        lines = plan.waits.spell(places) if places else []
        made = Plan({}, (*plan.acts, *lines))
        self._last = (snapshot, made, names) if names else None

    def hold(self, seen: Snapshot, claims: Claims) -> list[str]:
        """Log, and return, where ``seen`` forgets what the last plan left; claims that the cluster put an end
        to since are left out."""
        if self._last is None:
            return []
        before, plan, names = self._last
        self._last = None
        found = differences(before, plan, seen, names - claims.ended())
        for line in found:
            log.error("The snapshot does not state what the plan before it left: %s", line)
        return found
