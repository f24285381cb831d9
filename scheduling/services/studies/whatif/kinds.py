"""What each kind of change in a what-if does to a snapshot: queues, capacity, classes, policy, arrivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import ValidationError

from scheduling.engine import model as m
from scheduling.engine.document.schema import PolicyDoc
from scheduling.engine.reasons.wording import plural
from scheduling.services.errors import ServiceError
from scheduling.simulation.run import carrying

ARRIVES = "(arrives {number})"
"""Its name in the snapshot: no object of a cluster is called so."""
ADDED = "(added {number})"
UNCHANGED: Any = object()
"""A field that the document leaves out; None says no limit."""


class ChangeError(ServiceError):
    """Nothing is asked: the document has a fault."""

    def __init__(self, field: str, sentence: str, remedy: str) -> None:
        super().__init__("bad_change", sentence, remedy, field=field)


def fault(name: str, sentence: str, remedy: str) -> ChangeError:
    """At a field of the change that is being read."""
    return ChangeError(name, sentence, remedy)


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """Entitlement of a queue to one class."""

    kind: ClassVar[str] = "quota"
    queue: str
    gpu_class: str
    nominal_gpus: float = UNCHANGED
    borrowing_limit_gpus: float | None = UNCHANGED
    lending_limit_gpus: float | None = UNCHANGED
    weight: float = UNCHANGED

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        queue = _queue(snapshot, self.queue)
        _class(snapshot, self.gpu_class)
        before = queue.quotas.get(self.gpu_class, m.Quota())
        fields: dict[str, Any] = {
            "nominal": _milli(self.nominal_gpus),
            "borrowing_limit": _milli(self.borrowing_limit_gpus),
            "lending_limit": _milli(self.lending_limit_gpus),
            "weight": self.weight,
        }
        changed = {name: value for name, value in fields.items() if value is not UNCHANGED}
        # Whom the quota of before would protect until its grace ends: what is asked is how it is then.
        quota = replace(before, lowered=None, **changed)
        return _with_queue(snapshot, replace(queue, quotas={**queue.quotas, self.gpu_class: quota}))


@dataclass(frozen=True, slots=True)
class QueueChange:
    """Settings of a queue; with ``parent`` a new one ("" is directly below the root)."""

    kind: ClassVar[str] = "queue"
    queue: str
    parent: str = UNCHANGED
    priority: int = UNCHANGED
    stop: str = UNCHANGED
    max_running: int | None = UNCHANGED
    max_running_per_user: int | None = UNCHANGED
    max_gpus_per_user: float | None = UNCHANGED
    min_run_time_s: int | None = UNCHANGED
    sharing: str = UNCHANGED
    """Empty is as the queue above."""

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        names = ("priority", "max_running", "max_running_per_user", "min_run_time_s")
        changed = {n: getattr(self, n) for n in names if getattr(self, n) is not UNCHANGED}
        if self.max_gpus_per_user is not UNCHANGED:
            changed["max_gpus_per_user"] = _milli(self.max_gpus_per_user)
        if self.stop is not UNCHANGED:
            changed["stop"] = m.Stop(self.stop)
        if self.sharing is not UNCHANGED:
            changed["sharing"] = m.Sharing(self.sharing) if self.sharing else None
        if self.parent is UNCHANGED:
            return _with_queue(snapshot, replace(_queue(snapshot, self.queue), **changed))
        if any(queue.name == self.queue for queue in snapshot.queues):
            raise fault("queue", f"There is a queue {self.queue} already.", "Choose another name.")
        if self.parent:
            _queue(snapshot, self.parent, "parent")
        fresh = m.Queue(self.queue, parent=self.parent or None, **changed)
        return replace(snapshot, queues=(*snapshot.queues, fresh))


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """Nodes more (or fewer, negative) of a class, like those there are, unless ``gpus_per_node`` says."""

    kind: ClassVar[str] = "capacity"
    gpu_class: str
    nodes: int
    gpus_per_node: float = UNCHANGED

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        _class(snapshot, self.gpu_class)
        of_class = [node for node in snapshot.nodes if node.gpu_class == self.gpu_class]
        if self.nodes < 0:
            return self._without(snapshot, of_class)
        like = next((n for n in of_class if n.ready and not n.dedicated), None)
        if self.gpus_per_node is UNCHANGED and like is None:
            raise fault(
                "gpus_per_node", f"No node of {self.gpu_class} is like it.", "Say how many."
            )
        like = like or m.Node("", self.gpu_class, 0)
        gpus = like.gpus if self.gpus_per_node is UNCHANGED else _milli(self.gpus_per_node)
        added = (
            replace(like, name=f"{ADDED.format(number=number)} {i:04}", gpus=gpus, foreign_gpus=0)
            for i in range(self.nodes)
        )
        return replace(snapshot, nodes=(*snapshot.nodes, *added))

    def _without(self, snapshot: m.Snapshot, of_class: Sequence[m.Node]) -> m.Snapshot:
        """Those that hold least go first; what ran there waits again."""
        usage: dict[str, int] = {}
        for work in snapshot.workloads:
            for node, members in work.placement.items():
                usage[node] = usage.get(node, 0) + members * work.gpus
        if -self.nodes > len(of_class):
            raise fault(
                "nodes",
                f"{self.gpu_class} has {plural(len(of_class), 'node')}.",
                "Take fewer of them away.",
            )
        order = sorted(of_class, key=lambda n: (n.ready, usage.get(n.name, 0), n.name))
        gone = {node.name for node in order[: -self.nodes]}
        return replace(
            snapshot,
            nodes=tuple(n for n in snapshot.nodes if n.name not in gone),
            workloads=tuple(_thrown_off(work, gone) for work in snapshot.workloads),
            node_sets=tuple(replace(s, nodes=s.nodes - gone) for s in snapshot.node_sets),
        )


@dataclass(frozen=True, slots=True)
class ClassChange:
    """How a class counts against others."""

    kind: ClassVar[str] = "class"
    gpu_class: str
    exchange_rate: float

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        _class(snapshot, self.gpu_class)
        return replace(
            snapshot,
            gpu_classes=tuple(
                replace(c, exchange_rate=self.exchange_rate) if c.name == self.gpu_class else c
                for c in snapshot.gpu_classes
            ),
        )


@dataclass(frozen=True, slots=True)
class PriorityChange:
    """A priority class, or with ``workload`` that of one workload."""

    kind: ClassVar[str] = "priority"
    priority_class: str
    workload: str = UNCHANGED
    value: int = UNCHANGED
    preemptible: bool = UNCHANGED
    min_run_time_s: int = UNCHANGED
    max_wait_s: int | None = UNCHANGED

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        names = [p.name for p in snapshot.priority_classes]
        if self.priority_class not in names:
            raise fault("priority_class", *_unknown("priority class", self.priority_class, names))
        if self.workload is not UNCHANGED:
            return self._of_one(snapshot)
        keys = ("value", "preemptible", "min_run_time_s", "max_wait_s")
        changed = {k: getattr(self, k) for k in keys if getattr(self, k) is not UNCHANGED}
        return replace(
            snapshot,
            priority_classes=tuple(
                replace(p, **changed) if p.name == self.priority_class else p
                for p in snapshot.priority_classes
            ),
        )

    def _of_one(self, snapshot: m.Snapshot) -> m.Snapshot:
        return replace(
            snapshot,
            workloads=tuple(
                replace(w, priority_class=self.priority_class) if w.name == self.workload else w
                for w in snapshot.workloads
            ),
        )


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One setting of the policy."""

    kind: ClassVar[str] = "policy"
    setting: str
    value: Any

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        settings = {f.name for f in fields(m.Policy)}
        if self.setting not in settings:
            raise fault("setting", *_unknown("setting", self.setting, sorted(settings)))
        before = getattr(snapshot.policy, self.setting)
        is_text = isinstance(before, str)
        if is_text != isinstance(self.value, str) or isinstance(self.value, list | dict):
            raise fault("value", "That is no value of this setting.", f"Write it like {before}.")
        self._check_bounds()
        return replace(snapshot, policy=replace(snapshot.policy, **{self.setting: self.value}))

    def _check_bounds(self) -> None:
        """As of the snapshot file; a whole number may be written as 3.0."""
        is_whole = isinstance(self.value, float) and self.value.is_integer()
        value = int(self.value) if is_whole else self.value
        try:
            PolicyDoc.model_validate({self.setting: value})
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            raise fault("value", "That is no value of this setting.", f"{why}.") from None


@dataclass(frozen=True, slots=True)
class ArrivalChange:
    """A workload that arrives now, or at ``at`` of a replay's past; it runs for ``run_s``."""

    kind: ClassVar[str] = "arrival"
    queue: str
    gpu_classes: tuple[str, ...]
    gpus_per_pod: float = 1
    pods_min: int = 1
    pods_max: int = UNCHANGED
    run_s: int = 3600
    priority_class: str = UNCHANGED
    user: str = ""

    def applied(self, snapshot: m.Snapshot, number: int) -> m.Snapshot:
        work = self.workload(snapshot, number)
        return replace(snapshot, workloads=(*snapshot.workloads, work))

    def workload(self, snapshot: m.Snapshot, number: int) -> m.Workload:
        _queue(snapshot, self.queue)
        for name in self.gpu_classes:
            _class(snapshot, name, "gpu_classes")
        return m.Workload(
            name=ARRIVES.format(number=number),
            queue=self.queue,
            priority_class=self._priority(snapshot),
            submitted=_after_all(snapshot),
            gpus=_milli(self.gpus_per_pod),
            user=self.user,
            members=m.Members(self.pods_min, self._most),
            elastic=self._most > self.pods_min,
            gpu_classes=self.gpu_classes,
            predicted=m.PredictedRunTime(float(self.run_s), float(self.run_s)),
        )

    @property
    def _most(self) -> int:
        return self.pods_min if self.pods_max is UNCHANGED else self.pods_max

    def _priority(self, snapshot: m.Snapshot) -> str:
        names = [p.name for p in snapshot.priority_classes]
        if self.priority_class is UNCHANGED:
            training = (p for p in snapshot.priority_classes if p.type is m.WorkloadType.TRAINING)
            least = min(training, key=lambda p: (abs(p.value), p.name), default=None)
            return least.name if least else names[0]
        if self.priority_class not in names:
            raise fault("priority_class", *_unknown("priority class", self.priority_class, names))
        return self.priority_class


Change = (
    QuotaChange | QueueChange | CapacityChange | ClassChange | PriorityChange | PolicyChange
    | ArrivalChange
)  # fmt: skip
KINDS: Mapping[str, type[Change]] = {
    kind.kind: kind
    for kind in (
        QuotaChange,
        QueueChange,
        CapacityChange,
        ClassChange,
        PriorityChange,
        PolicyChange,
        ArrivalChange,
    )
}


def one_of(names: Iterable[str]) -> str:
    return f"Write one of {', '.join(map(str, names))}."


def _unknown(what: str, name: str, names: Iterable[str]) -> tuple[str, str]:
    return f"There is no {what} {name}.", one_of(names)


def _queue(snapshot: m.Snapshot, name: str, field: str = "queue") -> m.Queue:
    for queue in snapshot.queues:
        if queue.name == name:
            return queue
    raise fault(field, f"There is no queue {name}.", "Write the name of a queue of this cluster.")


def _class(snapshot: m.Snapshot, name: str, field: str = "gpu_class") -> None:
    names = [c.name for c in snapshot.gpu_classes]
    if name not in names:
        raise fault(field, *_unknown("GPU class", name, names))


def _with_queue(snapshot: m.Snapshot, changed: m.Queue) -> m.Snapshot:
    queues = (changed if queue.name == changed.name else queue for queue in snapshot.queues)
    return replace(snapshot, queues=tuple(queues))


def _thrown_off(work: m.Workload, nodes: set[str]) -> m.Workload:
    return carrying.gone(work) if nodes & set(work.placement) else work


def _after_all(snapshot: m.Snapshot) -> datetime:
    latest = max([snapshot.now, *(w.submitted for w in snapshot.workloads)])
    return latest + timedelta(seconds=1)


def _milli(gpus: Any) -> Any:
    return gpus if gpus is UNCHANGED or gpus is None else round(gpus * m.MILLI)
