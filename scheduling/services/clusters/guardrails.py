"""Keep the objects by which a cluster itself holds people to the policy.

1. Read the policy in force, 2. compare the cluster with it, 3. in enforce mode repair what is out of
step, under the lease, 4. record how each object stands, where that changed.

Observe mode stops after comparing: nothing is written to the cluster, and people see what enforcing
would do. A settled cluster is only read. Which
guardrails there are to be is a pure function of the policy's rows and of what the nodes have.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from scheduling.cluster import guardrails as rails
from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.lease import LeaseLostError
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.guardrails import Finding, NamespaceRail, PriorityRail, Rails
from scheduling.cluster.guardrails.personas import Parameters, Persona
from scheduling.models import MILLI, Cluster, ClusterMode, Guardrail, GuardrailState, Queue
from scheduling.services.clusters import namespaces
from scheduling.services.clusters.connection import ClusterLink
from scheduling.services.clusters.namespaces import Bound, Machine
from scheduling.services.queues import rows as policies
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.queues.service_classes import ServiceClass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GuardrailPass:
    """What a pass found or left: objects by standing. ``skipped`` says why nothing was repaired."""

    findings: tuple[Finding, ...] = ()
    skipped: str = ""

    def count(self, *standings: GuardrailState) -> int:
        return sum(finding.standing in standings for finding in self.findings)


def guard(cluster: Cluster, link: ClusterLink) -> GuardrailPass:
    """One pass over the guardrails of ``cluster`` by the process that holds ``link``.

    Raises ApiError when the cluster does not answer.
    """
    if cluster.mode == ClusterMode.PAUSED:
        return GuardrailPass(skipped="paused")
    findings = look(cluster, link.client, link.mirror)
    skipped = ""
    if cluster.mode == ClusterMode.ENFORCE:
        try:
            repairs = rails.prudent(link.client, findings, check=link.lease.check)
            findings = rails.repair(link.client, repairs, check=link.lease.check)
        except LeaseLostError:
            skipped = "lease"
    record(cluster, findings, at=timezone.now())
    return GuardrailPass(tuple(findings), skipped)


def look(cluster: Cluster, client: Client, mirror: Mirror | None = None) -> list[Finding]:
    """How every guardrail of ``cluster`` stands now; reads only, nodes from a ``mirror`` that has seen them.
    Raises ApiError."""
    rows = policies.load(cluster, at=cluster.now())
    if mirror is not None and mirror.wait_synced(0):
        machines = namespaces.machines_in(mirror, rows.class_specs)
    else:
        machines = namespaces.machines_on(client, rows.class_specs)
    return rails.survey(client, rails.manifests(rails_of(rows, machines)))


def record(cluster: Cluster, findings: Iterable[Finding], *, at: datetime) -> None:
    """Bring the rows into line with ``findings``; a row that says the same already is left alone."""
    rows = {(g.kind, g.namespace, g.name): g for g in cluster.guardrails.all()}
    changed = False
    with transaction.atomic():
        for finding in findings:
            row = rows.pop((finding.kind, finding.namespace, finding.name), None)
            changed |= _save(cluster, row, finding, at)
        if rows:
            Guardrail.objects.filter(pk__in=[row.pk for row in rows.values()]).delete()
        Cluster.objects.filter(pk=cluster.pk).update(guarded_at=at)
    if changed or rows:
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


def rails_of(rows: PolicyRows, machines: Sequence[Machine] = ()) -> Rails:
    """The guardrails that the policy asks for on a cluster of ``machines``."""
    return Rails(
        priorities=tuple(PriorityRail(p.name, p.value) for p in rows.priority_classes),
        namespaces=tuple(namespace_rails(rows, machines)),
        gpu_resources=tuple(sorted({c.resource_name for c in rows.gpu_classes})),
        reserved=tuple(c.reserved_labels for c in rows.gpu_classes if c.reserved_labels),
        accounts=settings.WEIR_ACCOUNTS_NAMESPACE,
    )


def namespace_rails(
    rows: PolicyRows, machines: Sequence[Machine], only: Container[str] | None = None
) -> Iterable[NamespaceRail]:
    """What stands in each namespace of the queues, or in those among them alone."""
    by_id = {q.pk: q for q in rows.queues}
    classed = {c.resource_name for c in rows.gpu_classes}
    # GPUs of no class are nobody's to run on, by whatever way.
    of_none = {name: 0 for m in machines for name in m.resources if name not in classed}
    for name in sorted({q.namespace for q in rows.queues if q.namespace}):
        if only is not None and name not in only:
            continue
        queues = [q for q in rows.queues if q.namespace == name]
        lines = [_line(queue, by_id) for queue in queues]
        # A queue below another of the same namespace is bounded by that one already.
        tops = [line for line in lines if not any(q.namespace == name for q in line[1:])]
        by_line = [(line, _limits(line, rows)) for line in tops]
        cpus, memory_mib, pods = namespaces.bounds_of(by_line, machines)
        yield NamespaceRail(
            name=name,
            queues=tuple(sorted(q.name for q in queues if q.name in rows.leaf_names)),
            hard={**of_none, **_hard([limits for _, limits in by_line], rows)},
            cpus=cpus,
            memory_mib=memory_mib,
            pods=pods,
            pod_security=namespaces.security_of(lines),
            groups=_groups(lines),
            parameters=_parameters(queues, rows),
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


def _parameters(queues: list[Queue], rows: PolicyRows) -> Parameters | None:
    """Personas and what they may run in those of ``queues`` that a team is bound to; None when there are
    none."""
    classes = rows.service_classes
    bound = [q for q in queues if q.name in rows.leaf_names and classes.binds(q.path)]
    if not bound:
        return None
    default = next((p.name for p in rows.priority_classes if p.is_default), "")
    return Parameters(
        default_priority=default,
        queues={q.name: [(one.user, _persona(one)) for one in classes.at(q.path)] for q in bound},
    )


def _persona(service: ServiceClass) -> Persona:
    return Persona(
        name=service.persona,
        priority_classes=service.priority_classes,
        gpu_classes=service.gpu_classes,
        max_gpus=service.max_gpus,
        max_run_time_s=service.max_run_time_s,
    )


def _limits(line: list[Queue], rows: PolicyRows) -> dict[str, Bound]:
    """What the queue at the end of ``line`` may hold of each class."""
    return {c.name: _limit(line, c.pk, rows) for c in rows.gpu_classes}


def _hard(limits: list[dict[str, Bound]], rows: PolicyRows) -> dict[str, int]:
    """Whole devices of each resource that the queues' limits let them hold together."""
    bounds: dict[str, Bound] = {}
    for gpu_class in rows.gpu_classes:
        amounts = [each[gpu_class.name] for each in limits]
        before = bounds.get(gpu_class.resource_name, 0)
        bounds[gpu_class.resource_name] = _sum([before, *amounts])
    # A part of a device is a pod's whole request or nothing, so only whole devices count.
    return {name: bound // MILLI for name, bound in bounds.items() if bound is not None}


def _limit(line: list[Queue], class_pk: int, rows: PolicyRows) -> Bound:
    """The least of the limits along the line: nominal + borrowing limit, where there is one."""
    limits, quotas = [], rows.quotas
    for queue in line:
        quota = quotas.get((queue.pk, class_pk))
        if quota is not None and quota.borrowing_limit is not None:
            limits.append(quota.nominal + quota.borrowing_limit)
    return min(limits, default=None)


def _sum(bounds: Iterable[Bound]) -> Bound:
    total = 0
    for bound in bounds:
        if bound is None:
            return None
        total += bound
    return total
