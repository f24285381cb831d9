"""Where the workloads of a snapshot sit, or claim to: seats in a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from scheduling.engine import model as m
from scheduling.engine.compile.structs import Flags
from scheduling.engine.roles import members_on, ordered
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.snapshot.workload_columns import Roster, seconds
from scheduling.engine.state.roles import FIRST_ROLE, WHOLE
from scheduling.engine.state.units import GPUS

Places = Mapping[tuple[str, str], tuple[int, int]]
"""Number of each node and class, and how many whole GPUs it offers."""


def seat_all(frame: Frame, roster: Roster, runs: Flags, claims: Flags, nodes: list[m.Node]) -> None:
    """Seat those that run and those that claim seats; ``runs`` and ``claims`` by slot."""
    classes = {name: i for i, name in enumerate(frame.class_names)}
    gpus = frame.nodes.size[GPUS].tolist()
    places = {(n.name, n.gpu_class): (i, gpus[i] // m.MILLI) for i, n in enumerate(nodes)}
    for slot in np.flatnonzero(runs | claims).tolist():
        work = roster.works[slot]
        if runs[slot]:
            _run(frame, slot, work, classes, places)
            if work.leaving_members:
                frame.part(slot, _parting_seats(work, places))
        elif work.placement and work.gpu_class:
            _promise(frame, slot, work, classes[work.gpu_class], places)
    for slot in np.flatnonzero(runs & claims).tolist():
        if roster.works[slot].leaving and _keeps_seats(frame, slot):
            _spare(frame, slot)


def _promise(frame: Frame, slot: int, work: m.Workload, gpu_class: int, places: Places) -> None:
    seats = _seats(work, frame.class_names[gpu_class], places)
    if _is_still_asked(work, len(seats)) and not _lost_device(work, seats):
        frame.promise(slot, gpu_class, seats)


def _run(
    frame: Frame, slot: int, work: m.Workload, classes: Mapping[str, int], places: Places
) -> None:
    """Seat a running workload where the snapshot says."""
    kind = _kind(work)
    frame.start_on(slot, classes[kind], _seats(work, kind, places))
    w = frame.work
    w.started[slot] = seconds(work.started, frame.now)
    w.checkpointed[slot] = seconds(work.checkpointed, -np.inf)
    w.stale[slot] = seconds(work.stale_since, np.inf)
    w.leaving[slot] = work.leaving


def _keeps_seats(frame: Frame, slot: int) -> bool:
    """Whether what stays and what others claim leaves it the seats that it leaves."""
    work, nodes, used = frame.work, frame.nodes, frame.nodes.foreign.copy()
    for w in np.flatnonzero(frame.holds.head >= 0).tolist():
        if w == slot or not work.leaving[w]:
            for node, _ in frame.seats_of(w):
                used[:, node] += work.need[:, w]
    own = [node for node, _ in frame.seats_of(slot)]
    return bool((used[:, own] <= nodes.size[:, own]).all())


def _spare(frame: Frame, slot: int) -> None:
    """It keeps its seats as if it ran. Nothing protects it and it loses nothing: whoever may take them does
    so before anybody else has to leave.
    """
    w = frame.work
    w.leaving[slot], w.claims[slot], w.elastic[slot] = False, True, False
    w.least[slot] = w.most[slot] = w.members[slot]
    w.started[slot], w.checkpointed[slot], w.stale[slot] = -np.inf, frame.now, np.inf
    w.restart[slot], w.evictions[slot], w.ends_within[slot] = 0, 0, np.inf


def _kind(work: m.Workload) -> str:
    return work.gpu_class or work.gpu_classes[0]


def _parting_seats(work: m.Workload, places: Places) -> list[tuple[int, int]]:
    """Seats of the members that it gave up."""
    gone = replace(
        work,
        placement=work.leaving_members,
        devices=work.leaving_devices,
        roles=tuple(replace(one, placement=one.leaving) for one in work.roles),
    )
    return _seats(gone, _kind(work), places)


def _is_still_asked(work: m.Workload, members: int) -> bool:
    """Whether a promise of so many members is one that the workload asks for as it is now."""
    listed = not work.gpu_classes or work.gpu_class in work.gpu_classes
    return listed and work.members.min <= members <= work.members.max


def _lost_device(work: m.Workload, seats: list[tuple[int, int]]) -> bool:
    return 0 < work.gpus < m.MILLI and any(device < 0 for _, device in seats)


def _seats(work: m.Workload, kind: str, places: Places) -> list[tuple[int, int]]:
    """Node and device of each member; device -1 for whole GPUs, and for a share whose device is not
    known or is none of those the node offers now: it counts against the node, and nobody joins it.
    """
    seats = []
    if work.roles:
        return seats_by_role(work, lambda node: places[node, kind][0])
    for node, members in work.placement.items():
        place, offered = places[node, kind]
        devices = work.devices.get(node, ()) if work.gpus < m.MILLI else ()
        stated = [device if device < offered else -1 for device in devices[:members]]
        seats += [(place, device) for device in (*stated, *[-1] * (members - len(stated)))]
    return seats


def seats_by_role(work: m.Workload, number: Callable[[str], int]) -> list[tuple[int, int]]:
    """Node and device of each part, ``number`` is that of a node: the first part of a member has its role in
    place of a device."""
    found, loose = members_on(work.roles, work.placement, work.gpus)
    roles = ordered(work.roles)
    seats = []
    for role, node, members in found:
        member = [FIRST_ROLE - role, *[WHOLE] * (roles[role].gpus // work.gpus - 1)]
        seats += [(number(node), device) for device in member * members]
    for node, parts in loose.items():
        seats += [(number(node), WHOLE)] * parts
    return seats
