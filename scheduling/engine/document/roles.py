"""Gangs of unlike members in a document: their roles say what other workloads say with other keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import gcd

from scheduling.engine import model as m
from scheduling.engine.document.schema import MOST_HELD, MembersDoc, SnapshotDoc, WorkloadDoc
from scheduling.engine.model import MOST_ROLES

INSTEAD = ("gpus", "members", "cpus", "memory_gib", "beside", "placement")
"""Keys that roles stand in place of."""
NEVER = ("devices", "leaving_members", "leaving_devices")
ALIKE = "take it out, or take the roles out"


def fill_in(doc: SnapshotDoc) -> list[m.Fault]:
    """Count each gang with roles in parts (``model.Workload.roles``); faults of those that cannot be."""
    faults: list[m.Fault] = []
    for i, work in enumerate(doc.workloads):
        if work.roles:
            found = list(_faults(f"workloads[{i}]", work))
            faults += found
            if not found:
                _fill(work)
    return faults


def take_out(work: WorkloadDoc) -> None:
    """Of what a gang with roles is counted by, the roles alone are written."""
    if work.roles:
        for key in INSTEAD:
            setattr(work, key, WorkloadDoc.model_fields[key].default)


def _faults(at: str, work: WorkloadDoc) -> Iterator[m.Fault]:
    for key in (*INSTEAD, *NEVER):
        if key in work.model_fields_set:
            yield m.Fault(f"{at}.{key}", str(getattr(work, key)), "nothing beside roles", ALIKE)
    if work.elastic:
        remedy = "take it out: gangs of unlike members neither grow nor shrink"
        yield m.Fault(f"{at}.elastic", "true", "false beside roles", remedy)
    if work.topology.segment:
        remedy = "take it out: segments are of members that are alike"
        yield m.Fault(f"{at}.topology.segment", "a segment", "nothing beside roles", remedy)
    if not 2 <= len(work.roles) <= MOST_ROLES:
        remedy = "put members that are alike together; one role is members and gpus"
        yield m.Fault(f"{at}.roles", str(len(work.roles)), f"two to {MOST_ROLES} roles", remedy)
    names = [role.name for role in work.roles]
    gpus = 0.0
    for k, role in enumerate(work.roles):
        path = f"{at}.roles[{k}]"
        if role.name in names[:k]:
            yield m.Fault(f"{path}.name", repr(role.name), "a name that stands once", "rename it")
        if role.gpus < 1 or role.gpus % 1:
            remedy = "round it; leave a role without GPUs out, it takes none"
            yield m.Fault(f"{path}.gpus", f"{role.gpus:g}", "whole GPUs, at least 1", remedy)
        gpus += role.gpus * role.members
        placed = sum(role.placement.values())
        if placed > role.members:
            found, expected = f"{placed} members", f"at most {role.members}"
            yield m.Fault(f"{path}.placement", found, expected, "correct it, or members")
    if gpus > MOST_HELD:
        remedy = "have fewer members"
        yield m.Fault(f"{at}.roles", f"{gpus:g} GPUs", f"at most {MOST_HELD:,}", remedy)


def _fill(work: WorkloadDoc) -> None:
    part = gcd(*(int(role.gpus) for role in work.roles))
    parts = sum(role.members * int(role.gpus) for role in work.roles) // part
    held: Counter[str] = Counter()
    for role in work.roles:
        for node, members in role.placement.items():
            held[node] += members * int(role.gpus) // part
    work.gpus, work.members, work.placement = part, MembersDoc(min=parts, max=parts), dict(held)
