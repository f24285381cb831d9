"""A plan as acts: which object gets which patch, and what is said about it.

Pure but for the memory of what was said when: the same plan on the same picture gives the same acts,
and on a settled cluster none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.cluster import labels
from scheduling.cluster.adapters import ADAPTERS, Adapter, Admission, ClassSpec, Observed
from scheduling.cluster.enforcement import Act
from scheduling.cluster.events import Event
from scheduling.cluster.picture import Picture
from scheduling.engine import model as m
from scheduling.services.situations import Situation, class_of, placement_of
from scheduling.services.snapshots import Known
from scheduling.services.words import Spoken, say, status_acts

Json = dict[str, Any]

BYPASSED = "Unsuspended outside the queue; suspended again until its turn comes."


@dataclass(frozen=True, slots=True)
class Scene:
    """All that acts are made of."""

    plan: m.Plan
    picture: Picture
    known: Mapping[str, Known]
    classes: Mapping[str, ClassSpec]
    cycle: int
    now: datetime


def phases_of(scene: Scene, spoken: Spoken) -> list[list[Act]]:
    """Acts in the order they are to be done: corrections, evictions, admissions, words."""
    adapters = {a.kind: a for a in ADAPTERS}
    by_key = {o.key: o for o in scene.picture.workloads}
    corrections = [
        act
        for observed in scene.picture.workloads
        if (act := _correction(observed, adapters[observed.kind], scene)) is not None
    ]
    corrected = {act.target.uid for act in corrections}
    leaving: list[Act] = []
    arriving: list[Act] = []
    waiting: list[tuple[m.Decision, Observed]] = []
    for decision in scene.plan.decisions:
        observed = by_key.get(decision.workload)
        if observed is None or observed.uid in corrected:
            continue
        adapter = adapters[observed.kind]
        if decision.action in (m.Action.EVICT, m.Action.MOVE):
            leaving.append(_eviction(decision, observed, adapter, scene))
        elif decision.action in (m.Action.GROW, m.Action.SHRINK):
            arriving.append(_resize(decision, observed, adapter, scene))
        elif decision.action is m.Action.ADMIT:
            arriving.append(_admission(decision, observed, adapter, scene))
        else:
            waiting.append((decision, observed))
    alive = [o.uid for o in scene.picture.workloads]
    words = status_acts(waiting, adapters, spoken, alive=alive, now=scene.now)
    return [corrections, leaving, arriving, words]


def _correction(observed: Observed, adapter: Adapter, scene: Scene) -> Act | None:
    """What a person did past the queue, brought back into it."""
    known = scene.known.get(observed.uid)
    if known is None:
        return None
    if known.situation is Situation.BYPASSING:
        return _suspend_again(observed, adapter, scene)
    if observed.stopped_by_hand and not observed.deleting and not observed.outcome:
        return Act(adapter, observed, _hold_patch)
    if known.situation is Situation.HOLDING and not observed.marked:
        return _adoption(observed, adapter, scene)
    return None


def _suspend_again(observed: Observed, adapter: Adapter, scene: Scene) -> Act:
    def decide(obj: Json) -> Json | None:
        if is_suspended(obj) or is_over(obj) or is_marked(obj):
            return None
        return adapter.suspension(obj, None)

    event = _event(
        observed, adapter, scene, "Resuspended", BYPASSED, once=str(observed.generation), bad=True
    )
    return Act(adapter, observed, decide, after=(event,))


def _hold_patch(obj: Json) -> Json | None:
    """Suspended by hand means: not now. Its mark goes, and a hold says so until it is released."""
    if not (is_suspended(obj) and is_marked(obj)):
        return None
    return {"metadata": {"annotations": {**dict.fromkeys(labels.MARK), labels.HOLD: "true"}}}


def _adoption(observed: Observed, adapter: Adapter, scene: Scene) -> Act | None:
    """Mark work that ran before Weir enforced, so that nobody takes it for a jumper later."""
    class_by_node = {n.name: n.gpu_class for n in reversed(scene.picture.nodes)}
    gpu_class = scene.classes.get(class_of(observed, class_by_node) or "")
    if gpu_class is None:
        return None
    admission = Admission(gpu_class, observed.members, {}, placement_of(observed), scene.now)

    def decide(obj: Json) -> Json | None:
        if is_suspended(obj) or is_over(obj) or is_marked(obj):
            return None
        return {"metadata": adapter.admission(obj, admission)["metadata"]}

    return Act(adapter, observed, decide)


def _admission(decision: m.Decision, observed: Observed, adapter: Adapter, scene: Scene) -> Act:
    admission = _place(decision, scene)

    def decide(obj: Json) -> Json | None:
        edited = int(obj["metadata"].get("generation", 0)) != observed.generation
        if not is_suspended(obj) or is_over(obj) or is_marked(obj) or is_held(obj) or edited:
            return None
        return say(adapter.admission(obj, admission), decision)

    once = f"{observed.generation} {scene.now.isoformat()}"
    event = _event(observed, adapter, scene, "Admitted", decision.sentence, once=once)
    return Act(adapter, observed, decide, after=(event,))


def _resize(decision: m.Decision, observed: Observed, adapter: Adapter, scene: Scene) -> Act:
    admission = _place(decision, scene)

    def decide(obj: Json) -> Json | None:
        if is_suspended(obj) or is_over(obj) or not is_marked(obj):
            return None
        if obj["spec"].get("parallelism", 1) == admission.members:
            return None
        return say(adapter.resize(obj, admission), decision)

    once = f"{observed.generation} {admission.members}"
    event = _event(observed, adapter, scene, "Resized", decision.sentence, once=once)
    return Act(adapter, observed, decide, after=(event,))


def _eviction(decision: m.Decision, observed: Observed, adapter: Adapter, scene: Scene) -> Act:
    def decide(obj: Json) -> Json | None:
        if is_suspended(obj) or is_over(obj):
            return None
        return say(adapter.suspension(obj, scene.cycle), decision)

    event = _event(
        observed, adapter, scene, "Evicted", decision.sentence, once=str(scene.cycle), bad=True
    )
    return Act(adapter, observed, decide, after=(event,))


def _place(decision: m.Decision, scene: Scene) -> Admission:
    hostnames = {n.name: n.hostname for n in scene.picture.nodes}
    return Admission(
        gpu_class=scene.classes[decision.gpu_class or ""],
        members=decision.members,
        nodes={hostnames.get(node, node): count for node, count in decision.placement.items()},
        placement=decision.placement,
        at=scene.now,
    )


def _event(
    observed: Observed,
    adapter: Adapter,
    scene: Scene,
    reason: str,
    message: str,
    *,
    once: str,
    bad: bool = False,
) -> Event:
    return Event(observed, adapter.api_version, reason, message, scene.now, once, warning=bad)


def is_suspended(obj: Json) -> bool:
    return bool(obj["spec"].get("suspend"))


def is_marked(obj: Json) -> bool:
    return labels.GPU_CLASS in (obj["metadata"].get("annotations") or {})


def is_held(obj: Json) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(labels.HOLD) == "true"


def is_over(obj: Json) -> bool:
    """It has ended, or is about to be gone."""
    if obj["metadata"].get("deletionTimestamp"):
        return True
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)
