"""A plan as acts: which object gets which patch, and what is said about it.

Pure but for the memory of what was said when: the same plan on the same picture gives the same acts,
and on a settled cluster none.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from scheduling.cluster.adapters import ADAPTERS, Adapter, Sighting, notes
from scheduling.cluster.enforcement.enforcer import Act
from scheduling.cluster.enforcement.events import Event
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.quantities import rfc3339
from scheduling.engine import model as m
from scheduling.services.cycle.enforce.placing import (
    is_marked,
    may_start,
    once_started,
    placed,
    planned,
    restorations,
)
from scheduling.services.cycle.enforce.scene import Scene
from scheduling.services.cycle.enforce.status import LastStatus, public, say, status_acts
from scheduling.services.snapshot.obstacles import RAN_OUT
from scheduling.services.snapshot.situations import (
    Situation,
    class_of,
    is_as_it_should_be,
    is_over_time,
    placement_of,
)
from scheduling.services.snapshot.start_failures import failed_start

Json = dict[str, Any]

BYPASSED = "Unsuspended outside the queue; suspended again until its turn comes."
OVERGROWN = "Made larger than it was admitted with; back to that size until it is admitted anew."
SWOLLEN = "Its pods ask for more GPUs than they were admitted with; it waits until its turn comes with those."
MOVED = "Starts again on the nodes it was moved to."


def phases_of(
    scene: Scene, spoken: LastStatus, *, hurried: bool = False
) -> tuple[list[list[Act]], list[Act]]:
    """Acts in the order they are to be done (corrections, room made, room taken), and words; fewer of
    these when ``hurried``."""
    adapters = {a.kind: a for a in ADAPTERS}
    corrections = _corrections(scene, adapters)
    corrected = {act.target.key for act in corrections}
    leaving, arriving = _acts_of_plan(scene, adapters, corrected)
    acted = corrected | {act.target.key for act in (*leaving, *arriving)}
    others = (o for o in scene.restless if o.key not in acted and o.uid not in scene.under_way)
    arriving += restorations(others, adapters, scene.known, scene.resource_names, scene.picture)
    words = status_acts(
        scene.plan.waits,
        lambda name: None if name in corrected else scene.find_idle(name),
        adapters,
        spoken,
        alive=scene.picture.by_uid,
        now=scene.now,
        hurried=hurried,
        etas=scene.etas,
    )
    said = [part for act in words for part in parts_of(act)[:1]]
    phases = [
        [p for act in phase for p in parts_of(act)] for phase in (corrections, leaving, arriving)
    ]
    return phases, said


def _corrections(scene: Scene, adapters: Mapping[str, Adapter]) -> list[Act]:
    """For what is not as the plans before left it."""
    return [
        act
        for observed in scene.restless
        if not is_as_it_should_be(observed)
        and observed.uid not in scene.under_way
        and (act := _correction(observed, adapters[observed.kind], scene)) is not None
    ]


def _acts_of_plan(
    scene: Scene, adapters: Mapping[str, Adapter], corrected: Set[str]
) -> tuple[list[Act], list[Act]]:
    """What makes room and what takes it by this plan; of what is ``corrected`` neither."""
    leaving: list[Act] = []
    arriving: list[Act] = []
    for decision in scene.plan.acts:
        observed = scene.find_idle(decision.workload)
        if observed is None or decision.workload in corrected:
            continue
        adapter = adapters[observed.kind]
        if decision.action is m.Action.MOVE and observed.parts:
            continue  # Nobody would make deleted pods again just because they were moved.
        if decision.action in (m.Action.EVICT, m.Action.MOVE):
            leaving.append(_eviction(decision, observed, adapter, scene))
        elif decision.action is m.Action.SHRINK:
            leaving.append(_resize(decision, observed, adapter, scene))
        elif decision.action is m.Action.GROW:
            arriving.append(_resize(decision, observed, adapter, scene))
        elif decision.action is m.Action.ADMIT:
            arriving.append(_admission(decision, observed, adapter, scene))
    return leaving, arriving


def parts_of(act: Act) -> list[Act]:
    """``act`` on each object that makes up the workload; Events are posted on the first alone."""
    observed = act.target
    if not observed.parts:
        return [act]
    first, *others = (
        replace(observed, kind="Pod", name=name, uid=uid, parts=()) for name, uid in observed.parts
    )
    silent = replace(act, workload_uid=observed.uid, before=(), after=())
    speaking = replace(
        silent, target=first, before=_on(first, act.before), after=_on(first, act.after)
    )
    return [speaking, *(replace(silent, target=part) for part in others)]


def _on(part: Sighting, events: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(replace(event, target=part) for event in events)


def _correction(observed: Sighting, adapter: Adapter, scene: Scene) -> Act | None:
    """What a person did past the queue, brought back into it; what was begun, brought to its end."""
    known = scene.known.get(observed.uid)
    situation = known.situation if known else None
    if observed.stopped_by_hand and not observed.deleting and not observed.outcome:
        return Act(adapter, observed, lambda obj: _hold(adapter, obj), purpose="hold")
    if situation is Situation.BYPASSING:
        return _suspend_again(observed, adapter, scene)
    if observed.moves_to is not None and observed.suspended:
        moving = situation is Situation.MOVING
        return _arrival(observed, adapter, scene) if moving else _stay(observed, adapter)
    return _brought_in_line(observed, adapter, scene) if situation is Situation.HOLDING else None


def _brought_in_line(observed: Sighting, adapter: Adapter, scene: Scene) -> Act | None:
    """What holds GPUs in another way, or for longer, than it was let in."""
    if is_over_time(observed, scene.known[observed.uid], scene.now):
        return _ending(observed, adapter, scene)
    if observed.unfinished:
        return _completion(observed, adapter, scene)
    if not observed.marked:
        return _adoption(observed, adapter, scene)
    return _cut_back(observed, adapter, scene) if observed.overgrown else None


def _suspend_again(observed: Sighting, adapter: Adapter, scene: Scene) -> Act:
    def decide(obj: Json) -> Json | None:
        admitted = is_marked(obj) and not observed.swollen
        if adapter.is_suspended(obj) or adapter.is_over(obj) or admitted:
            return None
        return adapter.suspension(obj, None)

    why = SWOLLEN if observed.swollen else BYPASSED
    event = _event(
        observed, adapter, scene, "Resuspended", why, once=str(observed.generation), bad=True
    )
    return Act(adapter, observed, decide, after=(event,), purpose="suspend again")


def _arrival(observed: Sighting, adapter: Adapter, scene: Scene) -> Act | None:
    """The second half of a move: it starts where its place was kept, once it has left."""
    target, nodes = observed.moves_to, scene.nodes
    spec = scene.classes.get(target.gpu_class) if target else None
    if (
        target is None
        or spec is None
        or observed.pods_left
        or not target.placement.keys() <= nodes.keys()
    ):
        return None
    members = sum(target.placement.values())
    admission = placed(observed, spec, members, target.placement, scene)

    def decide(obj: Json) -> Json | None:
        if not may_start(adapter, obj) or labels.MOVES_TO not in notes.of(obj):
            return None
        return adapter.admission(obj, admission)

    event = _event(observed, adapter, scene, "Admitted", MOVED, once=scene.now.isoformat())
    return Act(adapter, observed, decide, after=(event,), purpose="start")


def _stay(observed: Sighting, adapter: Adapter) -> Act | None:
    """Held on its way: its place is kept no longer, and it is planned anew once it is released."""

    def decide(obj: Json) -> Json | None:
        there = labels.MOVES_TO in notes.of(obj)
        return {"metadata": {"annotations": {labels.MOVES_TO: None}}} if there else None

    return Act(adapter, observed, decide, purpose="end the move of")


def _hold(adapter: Adapter, obj: Json) -> Json | None:
    """Suspended by hand means: not now. Its mark goes, and a hold says so until it is released."""
    if not (adapter.is_suspended(obj) and is_marked(obj)):
        return None
    return {"metadata": {"annotations": {**dict.fromkeys(labels.MARK), labels.HOLD: "true"}}}


def _ending(observed: Sighting, adapter: Adapter, scene: Scene) -> Act:
    """Its run is over, for its kind does not end it: it stops, and is held until its owner decides."""
    over = dict.fromkeys(labels.STATUS) | {
        labels.HOLD: labels.RUN_OVER,
        labels.REASON: m.Reason.RUN_TIME_OVER.value,
        labels.SENTENCE: RAN_OUT,
    }

    def decide(obj: Json) -> Json | None:
        if adapter.is_suspended(obj) or adapter.is_over(obj):
            return None
        patch = adapter.suspension(obj, None)
        patch.setdefault("metadata", {}).setdefault("annotations", {}).update(over)
        return patch

    event = _event(
        observed, adapter, scene, "RunTimeOver", RAN_OUT, once=scene.now.isoformat(), bad=True
    )
    return Act(adapter, observed, decide, after=(event,), purpose="end")


def _completion(observed: Sighting, adapter: Adapter, scene: Scene) -> Act | None:
    """An admission that reached some of its parts only is finished on the same nodes."""
    spec = scene.classes.get(observed.gpu_class or "")
    if spec is None:
        return None
    admission = placed(observed, spec, observed.members, observed.planned, scene)

    def decide(obj: Json) -> Json | None:
        return adapter.admission(obj, admission) if may_start(adapter, obj) else None

    return Act(adapter, observed, decide, purpose="start the rest of")


def _adoption(observed: Sighting, adapter: Adapter, scene: Scene) -> Act | None:
    """Mark work that ran before Weir enforced, so that nobody takes it for a jumper later."""
    class_by_node = scene.picture.class_by_node
    gpu_class = scene.classes.get(class_of(observed, class_by_node) or "")
    if gpu_class is None:
        return None
    admission = placed(observed, gpu_class, observed.members, placement_of(observed), scene)

    def decide(obj: Json) -> Json | None:
        if adapter.is_suspended(obj) or adapter.is_over(obj) or is_marked(obj):
            return None
        return {"metadata": adapter.admission(obj, admission)["metadata"]}

    return Act(adapter, observed, decide, purpose="mark")


def _cut_back(observed: Sighting, adapter: Adapter, scene: Scene) -> Act | None:
    """More members than were admitted would run past every limit."""
    spec, members = scene.classes.get(observed.gpu_class or ""), observed.sized
    if spec is None or members is None:
        return None
    admission = placed(observed, spec, members, observed.planned, scene)

    def decide(obj: Json) -> Json | None:
        running = is_marked(obj) and not adapter.is_suspended(obj) and not adapter.is_over(obj)
        return adapter.resize(obj, admission) if running else None

    event = _event(
        observed, adapter, scene, "Resized", OVERGROWN, once=str(observed.generation), bad=True
    )
    return Act(adapter, observed, decide, after=(event,), purpose="resize")


def _admission(decision: m.Decision, observed: Sighting, adapter: Adapter, scene: Scene) -> Act:
    admission = planned(decision, observed, scene)

    def decide(obj: Json) -> Json | None:
        edited = int(obj["metadata"].get("generation", 0)) != observed.generation
        if edited or observed.pods_left or not may_start(adapter, obj):
            return None
        return say(adapter.admission(obj, admission), decision)

    once = f"{observed.generation} {scene.now.isoformat()}"
    event = _event(observed, adapter, scene, "Admitted", public(decision), once=once)
    # A gang of bare pods is started by one write for each: the next plan waits for them.
    becomes = None if observed.parts else once_started(observed, admission)
    return Act(
        adapter, observed, decide, after=(event,), is_foreseen=True, purpose="start",
        becomes=becomes, cycle=scene.cycle,
    )  # fmt: skip


def _resize(decision: m.Decision, observed: Sighting, adapter: Adapter, scene: Scene) -> Act:
    admission = planned(decision, observed, scene)

    def decide(obj: Json) -> Json | None:
        if adapter.is_suspended(obj) or adapter.is_over(obj) or not is_marked(obj):
            return None
        patch = adapter.resize(obj, admission)
        return say(patch, decision) if patch else None

    once = f"{observed.generation} {admission.members}"
    event = _event(observed, adapter, scene, "Resized", public(decision), once=once)
    return Act(adapter, observed, decide, after=(event,), purpose="resize")


def _eviction(decision: m.Decision, observed: Sighting, adapter: Adapter, scene: Scene) -> Act:
    more = _aftermath(decision, observed, scene)

    def decide(obj: Json) -> Json | None:
        if adapter.is_suspended(obj) or adapter.is_over(obj):
            return None
        patch = say(adapter.suspension(obj, scene.cycle), decision)
        patch["metadata"]["annotations"] |= more
        return patch

    event = _event(
        observed, adapter, scene, "Evicted", public(decision), once=str(scene.cycle), bad=True
    )
    return Act(adapter, observed, decide, after=(event,), purpose="suspend")


def _aftermath(decision: m.Decision, observed: Sighting, scene: Scene) -> Json:
    """What is noted with an eviction: where it goes on, or when it is tried again.

    A gang that never was all up waits longer each time; one that lost members later does not.
    """
    if decision.action is m.Action.MOVE and decision.gpu_class and decision.placement:
        target = notes.target_note(decision.gpu_class, decision.placement)
        return {labels.MOVES_TO: target}
    known = scene.known[observed.uid]
    if decision.reason is not m.Reason.STALE_GANG or known.ran:
        return dict.fromkeys((labels.START_FAILURES, labels.RETRY_AT, labels.START_FAULT))
    failed = failed_start(observed, scene.now)
    return {
        labels.START_FAILURES: str(failed.times),
        labels.RETRY_AT: rfc3339(failed.retry_at),
        labels.START_FAULT: failed.fault.dump() if failed.fault.said else None,
    }


def _event(
    observed: Sighting,
    adapter: Adapter,
    scene: Scene,
    reason: str,
    message: str,
    *,
    once: str,
    bad: bool = False,
) -> Event:
    return Event(observed, adapter.api_version, reason, message, scene.now, once, warning=bad)
