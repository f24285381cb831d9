"""The engine's doors: snapshot to plan, frame to array plan, and the division alone."""

from __future__ import annotations

from collections.abc import Mapping

from scheduling.engine.array_plan import ArrayPlan
from scheduling.engine.decode import decode
from scheduling.engine.encode import encode
from scheduling.engine.frame import Frame
from scheduling.engine.kernels import plan_world
from scheduling.engine.model import Plan, Share, Snapshot
from scheduling.engine.shares import read_shares


def plan(snapshot: Snapshot) -> Plan:
    """What to do now, with a reason for everything that does not run.

    A pure function: equal snapshots give equal plans, whatever the order of their rows. Raises
    SnapshotError with one fault per place where ``snapshot`` contradicts itself.
    """
    frame = encode(snapshot)
    return decode(frame, plan_frame(frame))


def plan_frame(frame: Frame) -> ArrayPlan:
    """The same on a frame: ``plan(s) == decode(f, plan_frame(f))`` with ``f = encode(s)``.

    The result's arrays belong to the frame and are valid until it is planned again.
    """
    plan_world(frame.world, frame.now, True)
    while frame.widen():
        plan_world(frame.world, frame.now, True)
    return ArrayPlan(frame.buffers)


def divide(snapshot: Snapshot) -> Mapping[str, Mapping[str, Share]]:
    """The division alone: queue -> class -> share; the root is under the empty name.

    Raises SnapshotError as ``plan`` does.
    """
    frame = encode(snapshot)
    world = frame.world
    plan_world(world, frame.now, False)
    return read_shares(frame)
