"""Gangs of unlike members in a document: their roles say what other workloads say with other keys."""

from __future__ import annotations

from collections.abc import Iterator

from scheduling.engine import model as m
from scheduling.engine.document.schema import MOST_HELD, MembersDoc, SnapshotDoc, WorkloadDoc
from scheduling.engine.model import MOST_ROLES
from scheduling.engine.roles import counted

INSTEAD = ("gpus", "members", "cpus", "memory_gib", "beside", "placement", "leaving_members")
"""Keys that roles stand in place of."""
NEVER = ("devices", "leaving_devices")
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
    yield from _sizes(at, work)
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
        gpus += role.gpus * role.most
        placed = sum(role.placement.values())
        if placed > role.most:
            found, expected = f"{placed} members", f"at most {role.most}"
            yield m.Fault(f"{path}.placement", found, expected, "correct it, or members")
    if gpus > MOST_HELD:
        remedy = "have fewer members"
        yield m.Fault(f"{at}.roles", f"{gpus:g} GPUs", f"at most {MOST_HELD:,}", remedy)


def _sizes(at: str, work: WorkloadDoc) -> Iterator[m.Fault]:
    """One role makes a gang elastic, and nothing else does."""
    ranges = [k for k, role in enumerate(work.roles) if role.most != role.least]
    for k, role in enumerate(work.roles):
        if role.most < role.least:
            expected, remedy = f"at least min, {role.least}", "correct one of them"
            yield m.Fault(f"{at}.roles[{k}].members.max", str(role.most), expected, remedy)
    for k in ranges[1:]:
        remedy = "state one number: a gang grows and shrinks by members of one role"
        yield m.Fault(f"{at}.roles[{k}].members", "min and max", "one role with both", remedy)
    if work.elastic and not ranges:
        remedy = "give the role that grows and shrinks a min and a max, or take it out"
        yield m.Fault(f"{at}.elastic", "true", "false, as each role has one size", remedy)
    if ranges and not work.elastic:
        remedy = "write 'elastic: true', or give each role one number of members"
        yield m.Fault(f"{at}.elastic", "false", "true, as a role has min and max", remedy)
    if not any(role.least for role in work.roles):
        yield m.Fault(f"{at}.roles", "no members", "a member at least", "raise the min of a role")


def _fill(work: WorkloadDoc) -> None:
    roles = [
        m.Role(
            role.name, role.least, int(role.gpus) * m.MILLI, extra=role.most - role.least,
            placement=role.placement, leaving=role.leaving,
        ) for role in work.roles
    ]  # fmt: skip
    part, sizes, work.placement, work.leaving_members = counted(roles)
    work.gpus, work.members = part // m.MILLI, MembersDoc(min=sizes.min, max=sizes.max)
