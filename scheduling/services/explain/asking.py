"""What would become of work before it is submitted: the cluster as it is, planned with it in line.

Nothing is calculated here. The engine that runs the cluster plans the snapshot at hand once more for each
question, and says what it would say of the work if it had just arrived.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from scheduling.cluster.adapters import Observed, key_of
from scheduling.engine import Outline, Planner
from scheduling.engine import model as m
from scheduling.engine import plan as engine_plan
from scheduling.models import Cluster, Queue, RunTimeQuestion, State, Workload
from scheduling.services import run_times
from scheduling.services.clusters.connection import Address, address_of
from scheduling.services.clusters.consolidation import Freed
from scheduling.services.clusters.consolidation import freed as engine_freed
from scheduling.services.errors import ServiceError
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot import build as snapshots
from scheduling.services.snapshot.live import told_when_unreachable
from scheduling.services.starts.futures import look_ahead
from scheduling.services.starts.known import Known, known_of
from scheduling.services.starts.outcomes import correction_of
from scheduling.services.starts.refresh import KNOWN_RUNS, OWN_CHANGE, rounded
from scheduling.services.words.sentences import Sentence, sealed_of
from scheduling.simulation.ahead.correction import Correction, ForecastKind

FRESH_S = 5.0
"""A reading of the cluster answers questions for so long: people type faster than plans change."""
BUSY_S = 5.0
"""One question is planned at a time; whoever would wait longer is told to ask again."""
ASK_FUTURES = 10
"""Somebody waits for the answer while they type."""
ASKED = "(asked)"
"""Its name in the snapshot. No object of a cluster is called so."""
AUTHORED = (
    "priority_class", "gpus", "cpus", "memory_mib", "members", "gpu_classes", "topology", "elastic",
)  # fmt: skip
"""What a change of waiting work may set of the engine's value; its place in line stays its own."""
NEVER = (m.Reason.NEVER_FITS, m.Reason.NO_SUCH_CLASS)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the plan decides on the work, on the classes it accepts or on ``gpu_class`` alone."""

    gpu_class: str
    """Empty: all that it accepts, in its order."""
    decision: m.Decision
    share: m.Share | None
    """Of its queue in the class that was decided on, with the work in it."""
    ahead: tuple[str, ...]
    """Engine names of those who wait in its queue and go before it."""
    leaving: tuple[str, ...]
    """Engine names of those who would leave for it."""
    start: tuple[datetime, datetime] | None = None
    """P50 and P90 of its start where it waits; None where no time is worth telling."""

    @property
    def never(self) -> bool:
        return self.decision.reason in NEVER

    @property
    def starts(self) -> bool:
        return self.decision.action is m.Action.ADMIT


def rows_of(cluster: Cluster, names: Sequence[str]) -> list[Workload]:
    """The workloads of these engine names, in that order; without those that have no row yet."""
    wanted = {name.rsplit("/", 1)[-1] for name in names}
    live = Workload.objects.filter(cluster=cluster, name__in=wanted).exclude(state=State.FINISHED)
    found = {name_in_plan(work): work for work in live.select_related("queue")}
    return [found[name] for name in names if name in found]


def name_in_plan(work: Workload) -> str:
    """What the engine calls it."""
    return key_of(work.kind, work.namespace, work.name)


@dataclass(frozen=True, slots=True)
class DraftWork:
    """Work that nobody has submitted yet, in the queue that it would wait in."""

    cluster: Cluster
    queue: Queue
    observed: Observed

    def on(self, gpu_class: str) -> Observed:
        """The same, asking for one class alone."""
        return replace(self.observed, gpu_classes=(gpu_class,), names_classes=True)

    def said(self, decision: m.Decision) -> Sentence:
        """What the plan says of it, to be told to a reader."""
        return _sentence_of(decision, self.queue, self.observed.user)


def said_of(work: Workload, decision: m.Decision) -> Sentence:
    """What a plan says of ``work``, which stands in a queue, to be told to a reader."""
    assert work.queue is not None  # noqa: S101 - what no queue takes is in no plan
    return _sentence_of(decision, work.queue, work.user)


def _sentence_of(decision: m.Decision, queue: Queue, user: str) -> Sentence:
    return Sentence(
        cluster_id=queue.cluster_id,
        queue=queue.path,
        user=user,
        reason=decision.reason.value,
        sentence=decision.sentence,
        sealed=sealed_of(decision),
        numbers=dict(decision.numbers),
    )


def as_work_of(observed: Observed, user: str, cluster: Cluster, queue: Queue) -> DraftWork:
    """``observed`` as ``user`` would submit it to ``queue``, in whose namespace it is made."""
    at_home = replace(observed, user=user, namespace=queue.namespace or "default")
    return DraftWork(cluster, queue, at_home)


def ask(asked: DraftWork, gpu_classes: Sequence[str] = ()) -> list[Answer]:
    """What would become of it now: as it is, then on each of ``gpu_classes`` alone.

    Raises ServiceError when the cluster does not answer, or too many ask at once.
    """
    with _reading_of(asked.cluster) as reading:
        return [reading.answer(asked.observed, name) for name in ("", *gpu_classes)]


def compare(work: Workload, changed: Observed, *, held: bool) -> tuple[Answer, Answer]:
    """What becomes of ``work``, which waits, as it is and as ``changed`` would have it, in one picture;
    ``held``: it says itself that it is not to start yet.

    Raises ServiceError as ``ask`` does, and when the cluster does not show it.
    """
    with _reading_of(work.cluster, showing=name_in_plan(work)) as reading:
        return reading.compare(name_in_plan(work), changed, held=held)


def ask_run_times(asked: DraftWork, gpu_classes: Sequence[str]) -> RunTimeQuestion | None:
    """The question how long it would run on each of ``gpu_classes``; None before anything was learned."""
    one = asked.observed
    work = Workload(
        cluster=asked.cluster, queue=asked.queue, name=one.name, user=one.user, image=one.image,
        gpus=one.gpus, memory_mib=one.memory_mib, min_members=one.min_members,
        run_time_limit_s=one.run_time_limit_s, gpu_classes=list(one.gpu_classes),
    )  # fmt: skip
    return run_times.ask(cluster=asked.cluster, work=work, gpu_classes=gpu_classes)


def can_never_start(asked: DraftWork) -> m.Decision | None:
    """The engine's word that it fits no class even on empty nodes, None if it may start one day.

    Raises ServiceError as ``ask`` does.
    """
    with _reading_of(asked.cluster) as reading:
        return reading.never(asked.observed)


def drained(queue: Queue) -> list[m.Decision]:
    """Who would be evicted, and what each would lose, if ``queue`` were drained now.

    Raises ServiceError as ``ask`` does.
    """
    with _reading_of(queue.cluster) as reading:
        return reading.drained(queue.name)


def freed(cluster: Cluster, gpu_class: str, nodes: int) -> Freed:
    """What moving work together would do for ``nodes`` more whole nodes of ``gpu_class``, now.

    Raises ServiceError as ``ask`` does.
    """
    with _reading_of(cluster) as reading:
        return reading.freed(gpu_class, nodes)


def _may_start_later(decision: m.Decision) -> bool:
    waits = decision.action in (m.Action.WAIT, m.Action.RESERVE)
    return waits and decision.reason.value not in OWN_CHANGE


class _Reading:
    """A cluster as it was read once. Used by one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self.read_at = time.monotonic()
        self.revision = cluster.revision
        self._cluster = cluster
        self._known: tuple[Known, Correction] | None = None
        self.rows: PolicyRows
        self.fault: ServiceError | None = None
        self._planner = Planner()
        try:
            with told_when_unreachable(cluster, "Check again in a moment."):
                self.rows, self.snapshot = snapshots.live_under(cluster)
        except ServiceError as unreachable:
            self.fault = unreachable
            return
        self._queue_of = {w.name: w.queue for w in self.snapshot.workloads}
        latest = max([self.snapshot.now, *(w.submitted for w in self.snapshot.workloads)])
        self._after_all = latest + timedelta(seconds=1)

    def serves(self, cluster: Cluster) -> bool:
        fresh = time.monotonic() - self.read_at < FRESH_S
        return fresh and self.revision == cluster.revision

    def shows(self, name: str) -> bool:
        """Whether it has the workload ``name``; nothing asked for is always there."""
        return not name or self.fault is not None or name in self._queue_of

    def answer(self, observed: Observed, gpu_class: str) -> Answer:
        work = self._value(observed)
        if gpu_class:
            work = replace(work, gpu_classes=(gpu_class,))
        asked = replace(self.snapshot, workloads=(*self.snapshot.workloads, work))
        return self._answer(asked, work, gpu_class)

    def compare(self, name: str, changed: Observed, *, held: bool) -> tuple[Answer, Answer]:
        """Of the workload ``name`` as it waits, and in its place as it would be ``changed``."""
        works = self.snapshot.workloads
        work = next((one for one in works if one.name == name), None)
        if work is None or work.phase is not m.Phase.PENDING:
            raise ServiceError(
                "not_waiting", f"{name} does not wait in the cluster.", "Reload the page."
            )
        made = snapshots.newcomer(changed, self.rows, self.snapshot.now)
        other = replace(work, held=held, **{part: getattr(made, part) for part in AUTHORED})
        instead = tuple(other if one is work else one for one in works)
        asked = replace(self.snapshot, workloads=instead)
        return self._answer(self.snapshot, work, ""), self._answer(asked, other, "")

    def _answer(self, asked: m.Snapshot, work: m.Workload, gpu_class: str) -> Answer:
        """Of ``work``, which waits in ``asked``."""
        plan = _planned(self._planner.plan, asked)
        decision, ahead = self._found(plan, work)
        name = decision.gpu_class or gpu_class
        return Answer(
            gpu_class=gpu_class,
            decision=decision,
            share=plan.fair_share.get(work.queue, {}).get(name),
            start=self._start(asked, work.name) if _may_start_later(decision) else None,
            ahead=ahead,
            leaving=tuple(
                act.workload
                for act in plan.acts
                if act.for_workload == work.name and act.action in (m.Action.EVICT, m.Action.SHRINK)
            ),
        )

    def _start(self, asked: m.Snapshot, name: str) -> tuple[datetime, datetime] | None:
        """As forecasts are told of work that waits already."""
        if self._known is None:
            now = self.snapshot.now
            self._known = known_of(self._cluster, now), correction_of(self._cluster, now)
        known, correction = self._known
        if known.ended < KNOWN_RUNS:
            return None
        ahead = look_ahead(asked, known, futures=ASK_FUTURES, only=name)
        band = correction.correct(ahead.bands()[name], ForecastKind.FIRST)
        if not math.isfinite(band.p90_s):
            return None
        return rounded(asked.now, band.p50_s), rounded(asked.now, band.p90_s)

    def never(self, observed: Observed) -> m.Decision | None:
        """Others are left out: what never fits does not fit an empty cluster either."""
        alone = replace(self.snapshot, workloads=(self._value(observed),))
        [decision, *_] = _planned(engine_plan, alone).decisions
        return decision if decision.reason in NEVER else None

    def drained(self, name: str) -> list[m.Decision]:
        stopped = (
            replace(queue, stop=m.Stop.DRAIN) if queue.name == name else queue
            for queue in self.snapshot.queues
        )
        plan = _planned(self._planner.plan, replace(self.snapshot, queues=tuple(stopped)))
        return [act for act in plan.acts if act.reason is m.Reason.DRAINED]

    def freed(self, gpu_class: str, nodes: int) -> Freed:
        return _planned(lambda it: engine_freed(it, gpu_class, nodes), self.snapshot)

    def _value(self, observed: Observed) -> m.Workload:
        """It arrives after everybody, whatever the API server's clock says of them."""
        made = snapshots.newcomer(observed, self.rows, self.snapshot.now)
        return replace(made, name=ASKED, submitted=self._after_all)

    def _found(self, plan: Outline, work: m.Workload) -> tuple[m.Decision, tuple[str, ...]]:
        """The decision on it, and who goes before it where it waits."""
        for act in plan.acts:
            if act.workload == work.name:
                return act, ()
        waits = plan.waits
        at = list(waits.names).index(work.name)
        place = waits.positions[at]
        ahead = [
            (position, name)
            for name, position in zip(waits.names, waits.positions, strict=True)
            if 0 < position < place and self._queue_of.get(name) == work.queue
        ]
        [decision] = waits.spell([at])
        return decision, tuple(name for _, name in sorted(ahead))


class _Readings:
    """The last reading of each cluster, and whose turn it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Address, _Reading] = {}
        self._turns: dict[Address, threading.Lock] = {}

    def turn_of(self, address: Address) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(address, threading.Lock())

    def get(self, cluster: Cluster, showing: str) -> _Reading:
        """Called by whoever has the turn; read anew where it does not show the workload ``showing`` yet."""
        address = address_of(cluster)
        kept = self._kept.get(address)
        if kept is None or not kept.serves(cluster) or not kept.shows(showing):
            kept = self._kept[address] = _Reading(cluster)
        if kept.fault is not None:
            raise kept.fault
        return kept


_readings = _Readings()


@contextmanager
def _reading_of(cluster: Cluster, *, showing: str = "") -> Iterator[_Reading]:
    """The cluster's reading, for one thread at a time."""
    turn = _readings.turn_of(address_of(cluster))
    if not turn.acquire(timeout=BUSY_S):
        raise ServiceError(
            "busy", f"Too many ask {cluster.name} at once.", "Check again in a moment."
        )
    try:
        yield _readings.get(cluster, showing)
    finally:
        turn.release()


def _planned(plan: Any, snapshot: m.Snapshot) -> Any:
    try:
        return plan(snapshot)
    except m.SnapshotError as error:
        raise ServiceError(
            "cannot_plan",
            "The cluster cannot be planned as it is.",
            "Ask an admin to look at the engine's page.",
        ) from error
