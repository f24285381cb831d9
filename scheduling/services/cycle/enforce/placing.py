"""Where and with how much work is admitted, and how it is read once that is written.

What waits: whether an object may start as it stands, and how it is put back as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scheduling.cluster.adapters import Adapter, Admission, ClassSpec, Sighting, notes
from scheduling.cluster.enforcement.enforcer import Act
from scheduling.cluster.picture.compose import Picture
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.engine import model as m
from scheduling.engine.roles import members_on, ordered
from scheduling.services.cycle.enforce.scene import Scene
from scheduling.services.snapshot.situations import Situation, WorkloadFacts, roles_of


def planned(decision: m.Decision, observed: Sighting, scene: Scene) -> Admission:
    """What ``decision`` admits ``observed`` with."""
    gpu_class = scene.classes[decision.gpu_class or ""]
    admission = placed(observed, gpu_class, decision.members, decision.placement, scene)
    if not decision.roles:
        return admission
    return replace(admission, by_size=_hosts(observed, decision.roles, scene))


def _hosts(
    observed: Sighting, by_role: Mapping[str, Mapping[str, int]], scene: Scene
) -> dict[int, dict[str, int]]:
    """By the milli-GPU of a member."""
    return {
        role.gpus: {_host(n, scene): count for n, count in by_role.get(role.name, {}).items()}
        for role in roles_of(observed)
    }


def _by_size(
    observed: Sighting, placement: Mapping[str, int], scene: Scene
) -> dict[int, dict[str, int]]:
    """Where nobody decided on its members apart, as the parts on each node allow."""
    roles, by_role = roles_of(observed), dict[str, dict[str, int]]()
    if not roles:
        return {}
    found, _ = members_on(roles, placement, observed.gpus)
    for k, node, members in found:
        by_role.setdefault(ordered(roles)[k].name, {})[node] = members
    return _hosts(observed, by_role, scene)


def _host(node: str, scene: Scene) -> str:
    return scene.nodes[node].hostname if node in scene.nodes else node


def placed(
    observed: Sighting,
    gpu_class: ClassSpec,
    members: int,
    placement: Mapping[str, int],
    scene: Scene,
) -> Admission:
    """``members`` of ``observed`` on ``placement``: engine's name of a node -> how many."""
    nodes = scene.nodes
    chosen = [nodes[n] for n in placement if n in nodes]
    there = [node.labels for node in chosen]
    # One that is preferred only must not keep an elastic gang from growing past it.
    rigid = observed.min_members == observed.max_members
    liked = observed.topology.get("preferred") if rigid else None
    return Admission(
        gpu_class=gpu_class,
        members=members,
        nodes={_host(n, scene): count for n, count in placement.items()},
        by_size=_by_size(observed, placement, scene),
        placement=placement if observed.gpus else {},
        at=scene.now,
        domain=scene.levels.shared_label(observed.topology.get("required"), there),
        liked_domain=scene.levels.shared_label(liked, there),
        labels={node.name: node.labels for node in chosen},
        runtimes=scene.picture.runtimes,
        resource_names=scene.resource_names,
        claims=scene.picture.devices.claims(observed.namespace),
        group_uid=observed.uid if observed.parts else "",
        is_loose=bool(observed.start_fault.barred),
    )


def once_started(observed: Sighting, admission: Admission) -> Sighting:
    """``observed`` as it is read once the ``admission`` was written and no pod has come yet."""
    return replace(
        observed,
        suspended=False,
        marked=True,
        gpu_class=admission.gpu_class.name,
        planned=admission.placement,
        sized=admission.members,
        members=admission.members,
        members_wanted=admission.members,
        admitted=admission.at,
        admitted_gpus=observed.gpus,
    )


Json = dict[str, Any]


def is_marked(obj: Json) -> bool:
    """It was admitted by Weir and not suspended since."""
    return labels.GPU_CLASS in notes.of(obj)


def may_start(adapter: Adapter, obj: Json) -> bool:
    """It waits, nothing of its last run is left, and nobody holds it."""
    on_hold = notes.is_held(notes.of(obj))
    return not (on_hold or is_marked(obj)) and _is_at_rest(adapter, obj)


def restorations(
    workloads: Iterable[Sighting],
    adapters: Mapping[str, Adapter],
    known: Mapping[str, WorkloadFacts],
    resource_names: Sequence[str],
    picture: Picture,
) -> Iterator[Act]:
    """Acts that take out what an admission put into those of ``workloads`` that wait again: people see, and
    edit, what they wrote. Nobody's start is kept waiting for it."""
    for observed in workloads:
        if _is_to_be_restored(observed, known.get(observed.uid)):
            claims = picture.devices.claims(observed.namespace)
            yield _restoration(observed, adapters[observed.kind], resource_names, claims)


def _is_to_be_restored(observed: Sighting, known: WorkloadFacts | None) -> bool:
    if known is None or known.situation is not Situation.WAITING or known.blocked is not None:
        return False
    return observed.altered and observed.suspended and not observed.deleting


def _restoration(
    observed: Sighting, adapter: Adapter, resource_names: Sequence[str], claims: Claims
) -> Act:
    def decide(obj: Json) -> Json | None:
        is_left = labels.ORIGINAL in notes.of(obj) and not is_marked(obj)
        if not is_left or not _is_at_rest(adapter, obj):
            return None
        return adapter.restoration(obj, resource_names, claims)

    return Act(adapter, observed, decide, purpose="put back")


def _is_at_rest(adapter: Adapter, obj: Json) -> bool:
    if adapter.is_over(obj) or not adapter.is_suspended(obj):
        return False
    return not adapter.unsettled(obj)
