"""Keep the objects by which a cluster itself holds people to the policy.

1. Read the policy in force, 2. compare the cluster with it, 3. in enforce mode repair what is out of
step, under the lease, 4. record how each object stands, where that changed.

Observe mode stops after comparing: nothing is written to the cluster, and people see what enforcing
would do. A settled cluster is only read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from scheduling.cluster import guardrails as rails
from scheduling.cluster.connection.client import Client
from scheduling.cluster.connection.lease import LeaseLostError
from scheduling.cluster.connection.mirror import Mirror
from scheduling.cluster.guardrails import Finding
from scheduling.models import Cluster, ClusterMode, Guardrail, Standing
from scheduling.services.clusters import namespaces
from scheduling.services.clusters.connection import ClusterLink
from scheduling.services.clusters.rails import rails_of
from scheduling.services.policy import rows as policies

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Guarded:
    """What a pass found or left: objects by standing. ``skipped`` says why nothing was repaired."""

    findings: tuple[Finding, ...] = ()
    skipped: str = ""

    def count(self, *standings: Standing) -> int:
        return sum(finding.standing in standings for finding in self.findings)


def guard(cluster: Cluster, link: ClusterLink) -> Guarded:
    """One pass over the guardrails of ``cluster`` by the process that holds ``link``.

    Raises ApiError when the cluster does not answer.
    """
    if cluster.mode == ClusterMode.PAUSED:
        return Guarded(skipped="paused")
    findings = look(cluster, link.client, link.mirror)
    skipped = ""
    if cluster.mode == ClusterMode.ENFORCE:
        try:
            due = rails.prudent(link.client, findings, check=link.lease.check)
            findings = rails.repair(link.client, due, check=link.lease.check)
        except LeaseLostError:
            skipped = "lease"
    record(cluster, findings, at=timezone.now())
    return Guarded(tuple(findings), skipped)


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
