"""What a checkpointing workload has done before it was stopped, kept on its owner.

A pod learns at its start how many seconds of work it resumes from (`weir.dev/resumed-seconds`,
copied from its owner); when it is stopped, the work up to its last checkpoint goes back there.
"""

from __future__ import annotations

from workshop.testbed.server.kinds.resources import JOBS, Json
from workshop.testbed.server.store.context import World
from workshop.testbed.server.store.store import Record

from .scribe import Scribe

RESUMED_SECONDS = "weir.dev/resumed-seconds"


def learn(world: World, scribe: Scribe, pod: Record) -> Record:
    """Note on a pod that starts what it resumes from; returns its new version."""
    owner = _owner(world, pod)
    done = _resumed(owner.body) if owner is not None else 0
    return _note(scribe, pod, done) if done else pod


def resumed_s(pod: Record) -> float:
    """Return the seconds of work that the pod did not have to do again."""
    return _resumed(pod.body)


def save(
    world: World, scribe: Scribe, pod: Record, *, started: float, every: float, pace: float = 1.0
) -> None:
    """Keep the work of a running pod up to its last checkpoint; all pods of a gang say the same. A checkpoint
    comes every ``every`` seconds, each of which gets ``pace`` seconds of work done."""
    owner = _owner(world, pod)
    if owner is None or not started:
        return
    done = resumed_s(pod) + (world.clock.seconds() - started) // every * every * pace
    if done > _resumed(owner.body):
        _note(scribe, owner, done)


def _owner(world: World, pod: Record) -> Record | None:
    for reference in pod.body["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == "Job":
            return world.store.get(JOBS, pod.namespace, reference["name"])
    return None


def _resumed(body: Json) -> float:
    text = (body["metadata"].get("annotations") or {}).get(RESUMED_SECONDS, "0")
    try:
        return float(text)
    except ValueError:
        return 0.0


def _note(scribe: Scribe, record: Record, done: float) -> Record:
    return scribe.annotate(record, RESUMED_SECONDS, f"{done:g}")
