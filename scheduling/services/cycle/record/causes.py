"""What came to pass since the last cycle: why the engine had anything to decide.

Told in the words of the queues, not of the watch: work that came, ended or left, nodes, and what people
changed of the policy. What Weir wrote itself is no cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduling.models import State, Transition, Workload
from scheduling.services.cycle.changes import Changes
from scheduling.services.queues.rows import PolicyRows, engine_policy

Json = dict[str, Any]
MOST = 12
"""Causes of a cycle that are kept one by one; the others are counted."""


class What(StrEnum):
    SUBMITTED = "submitted"
    EDITED = "edited"
    ENDED = "ended"
    LEFT = "left"
    """Evicted, and the last of its pods has gone."""
    RETURNED = "returned"
    """Taken out of its queue before, and put back."""
    NODE_CAME = "node came"
    NODE_WENT = "node went"
    NODE_DOWN = "node down"
    NODE_READY = "node ready"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class Cause:
    """``workload`` for what is about work, else ``name``: of the node, or of what people changed."""

    what: What
    at: datetime
    workload: Workload | None = None
    name: str = ""

    def as_json(self) -> Json:
        about = {"name": self.name} if self.workload is None else {"workload": self.workload.pk}
        return {"what": self.what.value, "at": self.at.isoformat(), **about}


class Causes:
    """What a worker heard from one cycle to the next."""

    def __init__(self) -> None:
        self._heard: list[Cause] = []
        self._policy: PolicyRows | None = None

    def hear_of_work(self, changes: Changes, now: datetime) -> None:
        """Before, or after, ``changes`` are saved: the keys of new rows are read by ``as_json``."""
        self._heard += _steps(changes.transitions)
        new = {row.uid for row in changes.new}
        edited = (changes.edited[uid] for uid in changes.authored if uid not in new)
        self._heard += (Cause(What.EDITED, now, row) for row in edited)

    def hear_of_nodes(self, turned: Mapping[str, What], now: datetime) -> None:
        self._heard += (Cause(what, now, name=name) for name, what in turned.items())

    def hear_of_policy(self, rows: PolicyRows, now: datetime) -> None:
        """What is another than at the last call; rows that did not change are the very same objects."""
        before, self._policy = self._policy, rows
        if before is not None:
            self._heard += (Cause(What.POLICY, now, name=name) for name in _changed(before, rows))

    def take(self) -> list[Cause]:
        """All of it, in the order in which it came to pass; nothing is left."""
        heard, self._heard = self._heard, []
        return sorted(heard, key=lambda cause: cause.at)


def _steps(transitions: Iterable[Transition]) -> Iterator[Cause]:
    for step in transitions:
        what = _BY_STEP.get((step.from_state, step.to_state))
        if step.to_state == State.FINISHED:
            what = What.ENDED
        if what is not None:
            yield Cause(what, step.at, step.workload)


_BY_STEP: Mapping[tuple[str, str], What] = {
    ("", State.PENDING): What.SUBMITTED,
    (State.EVICTED, State.REQUEUED): What.LEFT,
    (State.FINISHED, State.REQUEUED): What.RETURNED,
}


def _changed(before: PolicyRows, now: PolicyRows) -> Iterator[str]:
    pairs = (
        ("quotas", before.entitlements.quotas, now.entitlements.quotas),
        ("loans", before.entitlements.loans, now.entitlements.loans),
        ("queues", before.queues, now.queues),
        ("priority classes", before.priority_classes, now.priority_classes),
        ("GPU classes", before.gpu_classes, now.gpu_classes),
        ("node pools", before.node_pools, now.node_pools),
    )
    yield from (name for name, old, new in pairs if old is not new)
    if before.service_classes != now.service_classes:
        yield "what people may have run"
    if engine_policy(before) != engine_policy(now):
        yield "settings of the engine"
    if before.cluster.mode != now.cluster.mode:
        yield "mode of the engine"
