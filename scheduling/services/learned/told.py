"""A learned order as a document, for programs. Durations in seconds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from scheduling.cluster.adapters import key_of
from scheduling.models import Cluster, LearnedEffect, LearnedOrder, LearnedState, Workload
from scheduling.services.learned import effects
from scheduling.services.learned.verdicts import conditions
from scheduling.services.learned.working import progress

MOST = 100
"""Differences that are told."""


def document(order: LearnedOrder, cluster: Cluster) -> dict[str, Any]:
    lived = {one.number: _effect(one) for one in order.effects.all()}
    return {
        "id": order.pk,
        "version": order.version,
        "state": order.state,
        "why": order.why,
        "since": order.since.isoformat(),
        "author": order.author,
        "sharing": order.sharing,
        "weights": order.weights,
        "spread": order.spread,
        "victim_weights": order.victim_weights,
        "victim_spread": order.victim_spread,
        "victims": order.victims_said,
        "trained_from": order.trained_from.isoformat(),
        "trained_to": order.trained_to.isoformat(),
        "workloads": order.workloads,
        "cpu_s": round(order.cpu_s, 1),
        "progress": progress(order) if order.state == LearnedState.TRAINING else 100,
        "may_decide": cluster.learned_may_decide,
        "verdict": order.verdict,
        "conditions": [
            {"condition": one.name, "is_met": one.is_met, "lacks": "" if one.is_met else one.lacks}
            for one in (conditions(order, cluster) if order.verdict else ())
        ],
        "steps": [
            {"state": step.state, "at": step.at.isoformat(), "why": step.why, "author": step.author}
            for step in order.steps.all()
        ],
        "looked_at": order.looked_at,
        "differed": order.differed,
        "differences": [
            {
                "cycle": row.number,
                "at": row.at.isoformat(),
                "kind": row.kind,
                "decided": row.decided,
                "would": row.would,
                "effect": lived.get(row.number),
            }
            for row in order.differences.all()[:MOST]
        ],
        "effects": asdict(effects.sums(order)),
    }


def _effect(one: LearnedEffect) -> dict[str, Any]:
    """Of the whole cycle: the version less what was decided. Without figures ``why_not`` says why."""
    return {
        "until": one.until.isoformat(),
        "workloads": one.workloads,
        "wait_s": one.wait_s,
        "least_s": one.least_s,
        "most_s": one.most_s,
        "lost_gpu_s": one.lost_gpu_s,
        "verdict": effects.verdict(one),
        "why_not": one.why_not,
    }


def uids_of(cluster: Cluster, names: Collection[str]) -> dict[str, str]:
    """By the engine's name, as far as the ledger has them; of several of one name the last."""
    short = {name.rpartition("/")[2] for name in names}
    rows = Workload.objects.filter(cluster=cluster, name__in=short).order_by("submitted_at", "id")
    told = rows.values_list("kind", "namespace", "name", "uid")
    every = {key_of(kind, namespace, name): uid for kind, namespace, name, uid in told}
    return {name: every[name] for name in names if name in every}
