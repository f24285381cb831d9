"""The engine's doors: snapshot to plan, frame to array plan, and the division alone."""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.engine.cycle.one_pass import plan_world
from scheduling.engine.explain.decode import decode, outline
from scheduling.engine.explain.outline import Outline
from scheduling.engine.explain.shares import read_shares
from scheduling.engine.model import Plan, Share, Snapshot
from scheduling.engine.snapshot.encode import encode
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.snapshot.workload_columns import Roster
from scheduling.engine.state.array_plan import ArrayPlan
from scheduling.engine.statement.lines import copy_shared_lines


def plan(snapshot: Snapshot) -> Plan:
    """What to do now, with a reason for everything that does not run.

    A pure function: equal snapshots give equal plans, whatever the order of their rows. Raises
    SnapshotError with one fault per place where ``snapshot`` contradicts itself.
    """
    frame = encode(snapshot)
    return decode(frame, plan_frame(frame))


class Planner:
    """Plans one snapshot after the other: what it has read of an object before, it does not read again.

    ``Planner().plan(s)`` says what ``plan(s)`` says, and so it does after any other snapshots.
    """

    def __init__(self) -> None:
        self._roster = Roster()

    def plan(self, snapshot: Snapshot) -> Outline:
        """Raises SnapshotError as ``plan`` does; what is remembered is forgotten then."""
        frame = self.read(snapshot)
        return outline(frame, plan_frame(frame))

    def read(self, snapshot: Snapshot) -> Frame:
        """The first of its three steps, for callers that do them one by one."""
        roster, self._roster = self._roster, Roster()
        frame = encode(snapshot, roster)
        self._roster = roster
        return frame


def plan_frame(frame: Frame) -> ArrayPlan:
    """The same on a frame: ``plan(s) == decode(f, plan_frame(f))`` with ``f = encode(s)``.

    The result's arrays belong to the frame and are valid until it is planned again.
    """
    plan_world(frame.world, frame.now, True)
    while frame.widen():
        plan_world(frame.world, frame.now, True)
    copy_shared_lines(frame.world)
    return ArrayPlan(frame.buffers)


def divide(snapshot: Snapshot) -> Mapping[str, Mapping[str, Share]]:
    """The division alone: queue -> class -> share; the root is under the empty name.

    Raises SnapshotError as ``plan`` does.
    """
    frame = encode(snapshot)
    world = frame.world
    plan_world(world, frame.now, False)
    return read_shares(frame)
