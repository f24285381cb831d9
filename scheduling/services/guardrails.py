"""Keep the objects by which a cluster itself holds people to the policy.

1. Read the policy in force, 2. compare the cluster with it, 3. in enforce mode repair what is out of
step, under the lease, 4. record how each object stands, where that changed.

Observe mode stops after comparing: nothing is written to the cluster, and people see what enforcing
would do. A settled cluster is only read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from scheduling.cluster import guardrails as rails
from scheduling.cluster.client import Client
from scheduling.cluster.guardrails import Finding, NamespaceRail, PriorityRail, Rails
from scheduling.cluster.lease import LeaseLostError
from scheduling.models import MILLI, Cluster, ClusterMode, Guardrail, Queue, Standing
from scheduling.services import policy as policies
from scheduling.services.policy import PolicyRows
from scheduling.services.workers import ClusterWorker

log = logging.getLogger(__name__)

Bound = int | None
"""Milli-GPU; None is unlimited."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a pass found or left: objects by standing. ``skipped`` says why nothing was repaired."""

    findings: tuple[Finding, ...] = ()
    skipped: str = ""

    def count(self, *standings: Standing) -> int:
        return sum(finding.standing in standings for finding in self.findings)


def guard(cluster: Cluster, worker: ClusterWorker) -> Guarded:
    """One pass over the guardrails of ``cluster`` by the process that holds ``worker``.

    Raises ApiError when the cluster does not answer.
    """
    if cluster.mode == ClusterMode.PAUSED:
        return Guarded(skipped="paused")
    findings = look(cluster, worker.client)
    skipped = ""
    if cluster.mode == ClusterMode.ENFORCE:
        try:
            due = rails.prudent(worker.client, findings, check=worker.lease.check)
            findings = rails.repair(worker.client, due, check=worker.lease.check)
        except LeaseLostError:
            skipped = "lease"
    record(cluster, findings, at=timezone.now())
    return Guarded(tuple(findings), skipped)


def establish(cluster: Cluster, client: Client) -> list[Finding]:
    """Make all guardrails of a cluster that no worker serves yet; what was refused is among them."""
    due = rails.prudent(client, look(cluster, client), check=lambda: None)
    findings = rails.repair(client, due, check=lambda: None)
    record(cluster, findings, at=timezone.now())
    return findings


def look(cluster: Cluster, client: Client) -> list[Finding]:
    """How every guardrail of ``cluster`` stands now; reads only. Raises ApiError."""
    rows = policies.load(cluster, at=cluster.now())
    return rails.survey(client, rails.manifests(rails_of(rows)))


def rails_of(rows: PolicyRows) -> Rails:
    """The guardrails that the policy asks for."""
    return Rails(
        priorities=tuple(PriorityRail(p.name, p.value) for p in rows.priority_classes),
        namespaces=tuple(_namespaces(rows)),
        gpu_resources=tuple(sorted({c.resource_name for c in rows.gpu_classes})),
    )


def _namespaces(rows: PolicyRows) -> Iterable[NamespaceRail]:
    by_id = {q.pk: q for q in rows.queues}
    for name in sorted({q.namespace for q in rows.queues if q.namespace}):
        queues = [q for q in rows.queues if q.namespace == name]
        lines = [_line(queue, by_id) for queue in queues]
        # A queue below another of the same namespace is bounded by that one already.
        tops = [line[0] for line in lines if not any(q.namespace == name for q in line[1:])]
        yield NamespaceRail(
            name=name,
            queues=tuple(sorted(q.name for q in queues if q.name in rows.leaf_names)),
            hard=_hard(tops, rows, by_id),
            groups=_groups(lines),
        )


def _line(queue: Queue, by_id: Mapping[int, Queue]) -> list[Queue]:
    """The queue and all above it, without the root."""
    line = []
    while queue.parent_id is not None:
        line.append(queue)
        queue = by_id[queue.parent_id]
    return line


def _groups(lines: list[list[Queue]]) -> tuple[str, ...]:
    """Groups that work in every queue of the namespace: sharing one with others gives no rights there."""
    shared = (
        set.intersection(*({q.access_group for q in line} for line in lines)) if lines else set()
    )
    return tuple(sorted(shared - {""}))


def _hard(tops: list[Queue], rows: PolicyRows, by_id: Mapping[int, Queue]) -> dict[str, int]:
    """Whole devices of each resource that the queues' limits let them hold together."""
    bounds: dict[str, Bound] = {}
    for gpu_class in rows.gpu_classes:
        held = [_limit(_line(queue, by_id), gpu_class.pk, rows) for queue in tops]
        before = bounds.get(gpu_class.resource_name, 0)
        bounds[gpu_class.resource_name] = _sum([before, *held])
    # A part of a device is a pod's whole request or nothing, so only whole devices count.
    return {name: bound // MILLI for name, bound in bounds.items() if bound is not None}


def _limit(line: list[Queue], class_pk: int, rows: PolicyRows) -> Bound:
    """The least of the limits along the line: nominal + borrowing limit, where there is one."""
    limits = []
    for queue in line:
        quota = rows.quota_by_key.get((queue.pk, class_pk))
        if quota is not None and quota.borrowing_limit_gpus is not None:
            limits.append(quota.nominal_gpus + quota.borrowing_limit_gpus)
    return min(limits, default=None)


def _sum(bounds: Iterable[Bound]) -> Bound:
    total = 0
    for bound in bounds:
        if bound is None:
            return None
        total += bound
    return total


def record(cluster: Cluster, findings: Iterable[Finding], *, at: datetime) -> None:
    """Bring the rows into line with ``findings``; a row that says the same already is left alone."""
    held = {(g.kind, g.namespace, g.name): g for g in cluster.guardrails.all()}
    changed = False
    with transaction.atomic():
        for finding in findings:
            row = held.pop((finding.kind, finding.namespace, finding.name), None)
            changed |= _save(cluster, row, finding, at)
        if held:
            Guardrail.objects.filter(pk__in=[row.pk for row in held.values()]).delete()
        Cluster.objects.filter(pk=cluster.pk).update(guarded_at=at)
    if changed or held:
        cluster.touch()


def _save(cluster: Cluster, row: Guardrail | None, finding: Finding, at: datetime) -> bool:
    fields = list(finding.fields)
    if row is None:
        row = Guardrail(
            cluster=cluster, kind=finding.kind, namespace=finding.namespace, name=finding.name
        )
    elif (row.standing, row.fields, row.detail) == (finding.standing, fields, finding.detail):
        return False
    if row.standing != finding.standing:
        row.since = at
    row.standing, row.fields, row.detail = finding.standing, fields, finding.detail
    row.save()
    return True
