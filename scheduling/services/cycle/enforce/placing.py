"""Where and with how much work is admitted, and how it is read once that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduling.cluster.adapters import Admission, ClassSpec, Observed
from scheduling.engine import model as m
from scheduling.services.cycle.enforce.scene import Scene


def planned(decision: m.Decision, observed: Observed, scene: Scene) -> Admission:
    """What ``decision`` admits ``observed`` with."""
    gpu_class = scene.classes[decision.gpu_class or ""]
    return placed(observed, gpu_class, decision.members, decision.placement, scene)


def placed(
    observed: Observed,
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
        nodes={nodes[n].hostname if n in nodes else n: count for n, count in placement.items()},
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


def once_started(observed: Observed, admission: Admission) -> Observed:
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
