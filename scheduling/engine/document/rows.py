"""Document to snapshot and back: each field stands under one name in both, but for those of ``WAYS``.

GPUs are numbers there and milli-GPU here, CPUs are cores there and milli-CPU here, GiB there and MiB here.
A live cluster may show what no file says: numbers and texts that people typed without bounds, nodes that
lost GPUs in use. Those are written at the bound, or said to be so, so that what is written can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pydantic import BaseModel

import scheduling.engine.document.schema as s
from scheduling.engine import model as m
from scheduling.engine.document.places import held_by_seat, is_misplaced, is_overfull, kept_by_seat
from scheduling.engine.document.roles import take_out

FIRST = datetime(s.FIRST_YEAR, 1, 1, tzinfo=UTC)
LAST = datetime(s.LAST_YEAR, 12, 31, tzinfo=UTC)

Convert = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class FieldWay:
    """How a field with a value is read and written, and its ``name`` in the model where that is another."""

    read: Convert = _as_it_is
    write: Convert = _as_it_is
    name: str = ""


def _milli(value: float) -> int:
    return round(value * m.MILLI)


def _gpus(value: int) -> float:
    return value / m.MILLI


def _held_gpus(value: int) -> float:
    return min(_gpus(value), s.MOST_HELD)


def _asked_gpus(value: int) -> float:
    """Of one member: whole GPUs, or a share of one."""
    return _held_gpus(value if value < m.MILLI else -(-value // m.MILLI) * m.MILLI)


def _text(value: str) -> str:
    """``value`` as it may stand in a file: without what is not printable, and of bounded length."""
    if not value.isprintable():
        value = value.encode("unicode_escape", "backslashreplace").decode("ascii")
    return value[: s.LONGEST]


def _row(kind: type[Any], doc: BaseModel) -> Any:
    """The row of the model that ``doc`` describes."""
    ways, found = WAYS.get(type(doc), {}), {}
    for name in type(doc).model_fields:
        way, value = ways.get(name, SAME), getattr(doc, name)
        if way is not None:
            found[way.name or name] = None if value is None else way.read(value)
    return kind(**found)


def _doc(kind: type[BaseModel], row: Any) -> Any:
    """The part of the document that describes ``row``."""
    ways, found = WAYS.get(kind, {}), {}
    for name in kind.model_fields:
        way = ways.get(name, SAME)
        if way is not None:
            value = getattr(row, way.name or name)
            found[name] = None if value is None else way.write(value)
    return kind(**found)


def _nested(kind: type[Any], doc: type[BaseModel], name: str = "") -> FieldWay:
    return FieldWay(partial(_row, kind), partial(_doc, doc), name)


def _each(key: Convert = _as_it_is, *, read: Convert, write: Convert) -> FieldWay:
    """Of a mapping; ``key`` writes its keys."""
    return FieldWay(
        lambda values: {k: read(v) for k, v in values.items()},
        lambda values: {key(k): write(v) for k, v in values.items()},
    )


SAME = FieldWay()
MILLI = FieldWay(_milli, _gpus)
HELD = FieldWay(_milli, _held_gpus)
GIB = FieldWay(lambda gib: round(gib * 1024), lambda mib: mib / 1024, "memory_mib")
NAMES = FieldWay(tuple, list)
DEVICES = _each(read=tuple, write=list)
AMOUNTS = _each(_text, read=_as_it_is, write=lambda amount: min(amount, s.MOST))
BOUNDED = FieldWay(write=lambda at: min(max(at, FIRST), LAST))
ENTITLEMENT = {"nominal": MILLI, "borrowing_limit": MILLI, "lending_limit": MILLI}
QUOTA = _nested(m.Quota, s.QuotaDoc)
SEGMENT = _nested(m.Segment, s.SegmentDoc)
WAYS: Mapping[type[BaseModel], Mapping[str, FieldWay | None]] = {
    s.NodeDoc: {
        "gpus": HELD, "foreign_gpus": HELD, "cpus": MILLI, "memory_gib": GIB, "overfull": None,
        "beside": AMOUNTS, "foreign_beside": AMOUNTS,
    },
    s.NodeSetDoc: {"nodes": FieldWay(frozenset, sorted), "constraints": FieldWay(write=_text)},
    s.LoweredDoc: ENTITLEMENT,
    s.QuotaDoc: {**ENTITLEMENT, "lowered": _nested(m.LoweredQuota, s.LoweredDoc)},
    s.QueueDoc: {
        "quotas": _each(read=QUOTA.read, write=QUOTA.write),
        "eviction_budget_gpus": MILLI,
        "max_gpus_per_user": MILLI,
        "user_usage": _each(_text, read=_milli, write=_held_gpus),
    },
    s.TopologyDoc: {"segment": SEGMENT},
    s.RoleDoc: {
        "name": FieldWay(write=_text), "gpus": HELD, "cpus": MILLI, "memory_gib": GIB, "beside": AMOUNTS,
    },
    s.WorkloadDoc: {
        "user": FieldWay(write=_text),
        "members": FieldWay(
            lambda doc: m.Members(doc.min, doc.max or doc.min),
            lambda of: s.MembersDoc(min=min(of.min, s.MOST_HELD), max=min(of.max, s.MOST_HELD)),
        ),
        "roles": FieldWay(
            lambda docs: tuple(_role(doc) for doc in docs),
            lambda roles: [_role_doc(role) for role in roles],
        ),
        "gpus": FieldWay(_milli, _asked_gpus),
        "cpus": MILLI,
        "memory_gib": GIB,
        "beside": AMOUNTS,
        "gpu_classes": FieldWay(tuple, lambda names: [_text(name) for name in names]),
        "topology": _nested(m.Topology, s.TopologyDoc),
        "predicted_s": _nested(m.PredictedRunTime, s.PredictedDoc, "predicted"),
        "state": FieldWay(name="phase"),
        "checkpointed": BOUNDED,
        "virtual_start": BOUNDED,
        "victims": NAMES,
        "taken_gpus": MILLI,
        "misplaced": None,
        "devices": DEVICES,
        "leaving_devices": DEVICES,
    },
}  # fmt: skip
"""By part of the document, what is not the same in the model; None: the file alone has it."""


def _role(doc: s.RoleDoc) -> m.Role:
    role: m.Role = _row(m.Role, doc)
    return replace(role, members=doc.least, extra=doc.most - doc.least)


def _role_doc(role: m.Role) -> s.RoleDoc:
    doc: s.RoleDoc = _doc(s.RoleDoc, role)
    if role.extra:
        doc.members = s.RangeDoc(min=role.members, max=role.members + role.extra)
    return doc


PARTS: Mapping[str, tuple[type[BaseModel], type[Any]]] = {
    "gpu_classes": (s.GpuClassDoc, m.GpuClass),
    "nodes": (s.NodeDoc, m.Node),
    "queues": (s.QueueDoc, m.Queue),
    "priority_classes": (s.PriorityClassDoc, m.PriorityClass),
    "workloads": (s.WorkloadDoc, m.Workload),
    "node_sets": (s.NodeSetDoc, m.NodeSet),
}
"""Lists of a document: what a row of each is there, and in the model."""


def read(doc: s.SnapshotDoc) -> m.Snapshot:
    rows: dict[str, Any] = {
        part: tuple(_row(kind, one) for one in getattr(doc, part))
        for part, (_, kind) in PARTS.items()
    }
    rows["workloads"] = tuple(map(_on_its_class, rows["workloads"]))
    return m.Snapshot(
        now=doc.now,
        policy=_row(m.Policy, doc.policy),
        topology_levels=tuple(doc.topology_levels),
        **rows,
    )


def _on_its_class(work: m.Workload) -> m.Workload:
    """What runs and names no class runs on the first that it asked for."""
    if work.phase is not m.Phase.RUNNING or work.gpu_class:
        return work
    return replace(work, gpu_class=work.gpu_classes[0])


def write_one(work: m.Workload) -> s.WorkloadDoc:
    """The document of one that holds nothing and claims nothing."""
    doc: s.WorkloadDoc = _doc(s.WorkloadDoc, work)
    take_out(doc)
    return doc


def write(snapshot: m.Snapshot) -> s.SnapshotDoc:
    rows: dict[str, Any] = {
        part: [_doc(kind, row) for row in getattr(snapshot, part)]
        for part, (kind, _) in PARTS.items()
    }
    works, nodes = rows["workloads"], rows["nodes"]
    for work in works:
        work.misplaced = is_misplaced(work)
    usage, claims = held_by_seat(works), kept_by_seat(works)
    for node in nodes:
        seat = node.name, node.gpu_class
        node.foreign_gpus = min(node.gpus, node.foreign_gpus)
        # Of workloads there, now or once claims are met.
        node.overfull = is_overfull(node, max(part.get(seat, 0) for part in (usage, claims)))
    for work in works:
        take_out(work)
    return s.SnapshotDoc(
        now=snapshot.now,
        policy=s.PolicyDoc.model_validate(asdict(snapshot.policy)),
        topology_levels=list(snapshot.topology_levels),
        **rows,
    )
