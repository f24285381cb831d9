"""The snapshot document: a mapping (read from YAML or JSON) to and from the engine's Snapshot.

The one place that knows the file's units: GPUs are numbers there and milli-GPU here, CPUs are cores
there and milli-CPU here, GiB there and MiB here. Its JSON Schema is docs/snapshot.schema.json.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from scheduling.engine import model as m


def _exact_to_a_thousandth(value: float) -> float:
    if abs(value * m.MILLI - round(value * m.MILLI)) > 1e-6:
        raise ValueError("a number of GPUs exact to a thousandth")
    return value


def _aware(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Gpus = Annotated[float, Field(ge=0), AfterValidator(_exact_to_a_thousandth)]
Instant = Annotated[datetime, AfterValidator(_aware)]
Name = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PolicyDoc(_Strict):
    history_strength: Annotated[float, Field(ge=0)] = 0
    preemption_delay_s: Annotated[int, Field(ge=0)] = 0
    eviction_cap: Annotated[float, Field(gt=0)] | None = None
    placement: Literal["pack", "spread"] = "pack"
    order: Literal["arrival", "shortest_predicted"] = "arrival"
    stale_gang_grace_s: Annotated[int, Field(ge=0)] = 60


class GpuClassDoc(_Strict):
    name: Name
    exchange_rate: Annotated[float, Field(gt=0)] = 1


class NodeDoc(_Strict):
    name: Name
    gpu_class: Name
    gpus: Gpus
    cpus: Annotated[float, Field(ge=0)] | None = None
    memory_gib: Annotated[float, Field(ge=0)] | None = None
    topology: dict[str, str] = {}
    ready: bool = True
    foreign_gpus: Gpus = 0


class QuotaDoc(_Strict):
    nominal: Gpus = 0
    borrowing_limit: Gpus | None = None
    lending_limit: Gpus | None = None
    weight: Annotated[float, Field(ge=0)] = 1


class QueueDoc(_Strict):
    name: Name
    parent: str | None = None
    priority: int = 0
    stop: m.Stop = m.Stop.NONE
    quotas: dict[str, QuotaDoc] = {}
    usage: dict[str, Annotated[float, Field(ge=0)]] = {}
    eviction_budget_gpus: Gpus | None = None


class PriorityClassDoc(_Strict):
    name: Name
    value: int = 0
    preemptible: bool = True
    min_run_time_s: Annotated[int, Field(ge=0)] = 0
    type: m.WorkloadType = m.WorkloadType.TRAINING


class MembersDoc(_Strict):
    min: Annotated[int, Field(ge=1)] = 1
    max: Annotated[int, Field(ge=1)] | None = None


class TopologyDoc(_Strict):
    required: str | None = None
    preferred: str | None = None


class PredictedDoc(_Strict):
    p50: Seconds
    p90: Seconds


class WorkloadDoc(_Strict):
    name: Name
    queue: str
    user: str = ""
    priority_class: Name
    members: MembersDoc = MembersDoc()
    gpus: Gpus = 1
    cpus: Annotated[float, Field(ge=0)] = 0
    memory_gib: Annotated[float, Field(ge=0)] = 0
    gpu_classes: list[str] = []
    topology: TopologyDoc = TopologyDoc()
    elastic: bool = False
    submitted: Instant
    predicted_s: PredictedDoc | None = None
    held: bool = False
    state: m.Phase = m.Phase.PENDING
    started: Instant | None = None
    checkpointed: Instant | None = None
    restart_cost_s: Annotated[int, Field(ge=0)] = 0
    stale_since: Instant | None = None
    leaving: bool = False
    awaits_victims: bool = False
    gpu_class: str | None = None
    placement: dict[str, Annotated[int, Field(ge=1)]] = {}
    devices: dict[str, list[Annotated[int, Field(ge=0)]]] = {}


class SnapshotDoc(_Strict):
    """Everything the engine sees."""

    now: Instant
    policy: PolicyDoc = PolicyDoc()
    gpu_classes: list[GpuClassDoc] = []
    nodes: list[NodeDoc] = []
    queues: list[QueueDoc] = []
    priority_classes: list[PriorityClassDoc] = []
    workloads: list[WorkloadDoc] = []


def parse(document: Any) -> m.Snapshot:
    """The Snapshot that ``document`` (what a YAML or JSON reader returned) describes.

    Raises SnapshotError with one fault per broken place: unknown keys, wrong types and ranges,
    names that stand twice or refer to nothing, and states that contradict themselves.
    """
    try:
        doc = SnapshotDoc.model_validate(document)
    except ValidationError as error:
        raise m.SnapshotError([_fault(line) for line in error.errors()]) from None
    faults = [*_doubles(doc), *_references(doc), *_contradictions(doc)]
    if faults:
        raise m.SnapshotError(faults)
    return _snapshot(doc)


def schema() -> dict[str, Any]:
    """JSON Schema of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weir snapshot",
        **SnapshotDoc.model_json_schema(),
    }


def _fault(line: Any) -> tuple[str, str, str]:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in line["loc"]).lstrip(".")
    found = "nothing" if line["type"] == "missing" else repr(line["input"])[:80]
    if line["type"] == "extra_forbidden":
        return path, found, "no such key"
    return path or "document", found, line["msg"].removeprefix("Value error, ")


def _doubles(doc: SnapshotDoc) -> list[tuple[str, str, str]]:
    faults = []
    for part in ("gpu_classes", "queues", "priority_classes", "workloads"):
        seen: set[str] = set()
        for i, row in enumerate(getattr(doc, part)):
            if row.name in seen:
                faults.append((f"{part}[{i}].name", repr(row.name), "a name that stands once"))
            seen.add(row.name)
    pairs: set[tuple[str, str]] = set()
    for i, node in enumerate(doc.nodes):
        if (node.name, node.gpu_class) in pairs:
            faults.append((f"nodes[{i}].name", repr(node.name), "one row a node and GPU class"))
        pairs.add((node.name, node.gpu_class))
    return faults


def _references(doc: SnapshotDoc) -> list[tuple[str, str, str]]:
    classes = {c.name for c in doc.gpu_classes}
    queues = {q.name for q in doc.queues}
    priorities = {p.name for p in doc.priority_classes}
    nodes = {n.name for n in doc.nodes}
    wanted = [
        (f"nodes[{i}].gpu_class", n.gpu_class, classes, "a name of gpu_classes")
        for i, n in enumerate(doc.nodes)
    ]
    for i, queue in enumerate(doc.queues):
        if queue.parent is not None:
            wanted.append((f"queues[{i}].parent", queue.parent, queues, "a name of queues"))
        for part in ("quotas", "usage"):
            wanted += [
                (f"queues[{i}].{part}.{name}", name, classes, "a name of gpu_classes")
                for name in getattr(queue, part)
            ]
    for i, work in enumerate(doc.workloads):
        at = f"workloads[{i}]"
        wanted.append(
            (f"{at}.priority_class", work.priority_class, priorities, "a name of priority_classes")
        )
        if work.gpu_class is not None:
            wanted.append((f"{at}.gpu_class", work.gpu_class, classes, "a name of gpu_classes"))
        wanted += [(f"{at}.placement.{n}", n, nodes, "a name of nodes") for n in work.placement]
    return [(path, repr(name), text) for path, name, known, text in wanted if name not in known]


def _contradictions(doc: SnapshotDoc) -> list[tuple[str, str, str]]:
    faults = [
        (f"queues[{i}].parent", repr(queue.parent), "a queue that is not below this one")
        for i, queue in enumerate(doc.queues)
        if _below_itself(queue, {q.name: q for q in doc.queues})
    ]
    for i, work in enumerate(doc.workloads):
        at, top = f"workloads[{i}]", work.members.max
        if top is not None and top < work.members.min:
            faults.append((f"{at}.members.max", str(top), f"at least min, {work.members.min}"))
        if work.state is m.Phase.RUNNING and work.started is None:
            faults.append((f"{at}.started", "nothing", "a time, because it is running"))
        if work.state is m.Phase.RUNNING and not (work.gpu_class or work.gpu_classes):
            faults.append((f"{at}.gpu_class", "nothing", "the class it runs on"))
        if work.state is m.Phase.PENDING and work.placement and not work.awaits_victims:
            faults.append(
                (f"{at}.placement", str(work.placement), "nothing, because it is pending")
            )
        if work.topology.required and work.topology.preferred:
            faults.append((f"{at}.topology", "both", "either required or preferred"))
    return faults


def _below_itself(queue: QueueDoc, by_name: dict[str, QueueDoc]) -> bool:
    seen, above = {queue.name}, queue.parent
    while above is not None and above in by_name:
        if above in seen:
            return True
        seen.add(above)
        above = by_name[above].parent
    return False


def _milli(value: float) -> int:
    return round(value * m.MILLI)


def _milli_or_none(value: float | None) -> int | None:
    return None if value is None else _milli(value)


def _mib(value: float | None) -> int | None:
    return None if value is None else round(value * 1024)


def _snapshot(doc: SnapshotDoc) -> m.Snapshot:
    return m.Snapshot(
        now=doc.now,
        policy=m.Policy(**doc.policy.model_dump()),
        gpu_classes=tuple(m.GpuClass(c.name, c.exchange_rate) for c in doc.gpu_classes),
        nodes=tuple(_node(n) for n in doc.nodes),
        queues=tuple(_queue(q) for q in doc.queues),
        priority_classes=tuple(m.PriorityClass(**p.model_dump()) for p in doc.priority_classes),
        workloads=tuple(_workload(w) for w in doc.workloads),
    )


def _node(doc: NodeDoc) -> m.Node:
    return m.Node(
        name=doc.name,
        gpu_class=doc.gpu_class,
        gpus=_milli(doc.gpus),
        cpus=_milli_or_none(doc.cpus),
        memory_mib=_mib(doc.memory_gib),
        topology=dict(doc.topology),
        ready=doc.ready,
        foreign_gpus=_milli(doc.foreign_gpus),
    )


def _queue(doc: QueueDoc) -> m.Queue:
    return m.Queue(
        name=doc.name,
        parent=doc.parent,
        priority=doc.priority,
        stop=doc.stop,
        quotas={
            name: m.Quota(
                _milli(q.nominal),
                _milli_or_none(q.borrowing_limit),
                _milli_or_none(q.lending_limit),
                q.weight,
            )
            for name, q in doc.quotas.items()
        },
        usage=dict(doc.usage),
        eviction_budget_gpus=_milli_or_none(doc.eviction_budget_gpus),
    )


def _workload(doc: WorkloadDoc) -> m.Workload:
    running = doc.state is m.Phase.RUNNING
    return m.Workload(
        name=doc.name,
        queue=doc.queue,
        user=doc.user,
        priority_class=doc.priority_class,
        submitted=doc.submitted,
        gpus=_milli(doc.gpus),
        cpus=_milli(doc.cpus),
        memory_mib=round(doc.memory_gib * 1024),
        members=m.Members(doc.members.min, doc.members.max or doc.members.min),
        gpu_classes=tuple(doc.gpu_classes),
        topology=m.Topology(doc.topology.required, doc.topology.preferred),
        elastic=doc.elastic,
        predicted=m.Predicted(doc.predicted_s.p50, doc.predicted_s.p90)
        if doc.predicted_s
        else None,
        held=doc.held,
        phase=doc.state,
        started=doc.started,
        checkpointed=doc.checkpointed,
        restart_cost_s=doc.restart_cost_s,
        stale_since=doc.stale_since,
        leaving=doc.leaving,
        awaits_victims=doc.awaits_victims,
        gpu_class=(doc.gpu_class or doc.gpu_classes[0]) if running else doc.gpu_class,
        placement=dict(doc.placement),
        devices={node: tuple(d) for node, d in doc.devices.items()},
    )


def dump(snapshot: m.Snapshot) -> dict[str, Any]:
    """The document of ``snapshot``: ``parse(dump(s)) == s``. Defaults are left out."""
    doc = SnapshotDoc(
        now=snapshot.now,
        policy=PolicyDoc.model_validate(asdict(snapshot.policy)),
        gpu_classes=[GpuClassDoc(**asdict(c)) for c in snapshot.gpu_classes],
        nodes=[_node_doc(n) for n in snapshot.nodes],
        queues=[_queue_doc(q) for q in snapshot.queues],
        priority_classes=[PriorityClassDoc(**asdict(p)) for p in snapshot.priority_classes],
        workloads=[_workload_doc(w) for w in snapshot.workloads],
    )
    return doc.model_dump(mode="json", exclude_defaults=True)


def _gpus(value: int) -> float:
    return value / m.MILLI


def _gpus_or_none(value: int | None) -> float | None:
    return None if value is None else value / m.MILLI


def _gib(value: int | None) -> float | None:
    return None if value is None else value / 1024


def _node_doc(node: m.Node) -> NodeDoc:
    return NodeDoc(
        name=node.name,
        gpu_class=node.gpu_class,
        gpus=_gpus(node.gpus),
        cpus=_gpus_or_none(node.cpus),
        memory_gib=_gib(node.memory_mib),
        topology=dict(node.topology),
        ready=node.ready,
        foreign_gpus=_gpus(node.foreign_gpus),
    )


def _queue_doc(queue: m.Queue) -> QueueDoc:
    return QueueDoc(
        name=queue.name,
        parent=queue.parent,
        priority=queue.priority,
        stop=queue.stop,
        quotas={
            name: QuotaDoc(
                nominal=_gpus(q.nominal),
                borrowing_limit=_gpus_or_none(q.borrowing_limit),
                lending_limit=_gpus_or_none(q.lending_limit),
                weight=q.weight,
            )
            for name, q in queue.quotas.items()
        },
        usage=dict(queue.usage),
        eviction_budget_gpus=_gpus_or_none(queue.eviction_budget_gpus),
    )


def _workload_doc(work: m.Workload) -> WorkloadDoc:
    predicted = work.predicted
    return WorkloadDoc(
        name=work.name,
        queue=work.queue,
        user=work.user,
        priority_class=work.priority_class,
        members=MembersDoc(min=work.members.min, max=work.members.max),
        gpus=_gpus(work.gpus),
        cpus=_gpus(work.cpus),
        memory_gib=work.memory_mib / 1024,
        gpu_classes=list(work.gpu_classes),
        topology=TopologyDoc(required=work.topology.required, preferred=work.topology.preferred),
        elastic=work.elastic,
        submitted=work.submitted,
        predicted_s=PredictedDoc(p50=predicted.p50, p90=predicted.p90) if predicted else None,
        held=work.held,
        state=work.phase,
        started=work.started,
        checkpointed=work.checkpointed,
        restart_cost_s=work.restart_cost_s,
        stale_since=work.stale_since,
        leaving=work.leaving,
        awaits_victims=work.awaits_victims,
        gpu_class=work.gpu_class,
        placement=dict(work.placement),
        devices={node: list(d) for node, d in work.devices.items()},
    )
