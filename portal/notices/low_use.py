"""People to tell that less would do than their work asks for. Somebody who may act on it has its owner told,
once a workload and day."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.urls import reverse

from portal.accounts.models import User
from portal.display.format import counted, hours, memory, percent, zone
from portal.notices.models import Kind, Notice
from portal.notices.outbox import tell
from portal.reports.requests_and_use import AskedRow
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce


def told_today(cluster: Cluster, works: Collection[int]) -> dict[int, datetime]:
    """When owners were told today, by the id of the workload. One query."""
    sources = {_source(cluster, pk): pk for pk in works}
    rows = Notice.objects.filter(cluster=cluster, source__in=list(sources))
    return {sources[source]: at for source, at in rows.values_list("source", "at")}


@transaction.atomic
def tell_owner(work: Workload, row: AskedRow, *, by: User) -> None:
    """Tell the owner of ``work``, the last run of ``row``, and write it into the audit log. Raises
    ServiceError where nobody can be told, or was told today."""
    cluster = work.cluster
    owner = User.objects.filter(username=work.user, is_active=True).first()
    if owner is None:
        raise ServiceError(
            "nobody_to_tell", f"Nobody signs in as {work.user or 'its owner'}.",
            "Tell the team of its queue.",
        )  # fmt: skip
    if work.pk in told_today(cluster, [work.pk]):
        raise ServiceError(
            "told_already", f"{owner} was told of {row.name} today.", "Tell them tomorrow."
        )
    sent = tell(
        owner, Kind.IDLE, cluster, source=_source(cluster, work.pk), about=work.name,
        title=f"{row.name} asks for more than it uses: {row.would_do} would do.",
        lines=_lines(row, by), address=reverse("web:workload", args=[cluster.name, work.uid]),
    )  # fmt: skip
    if not sent:
        raise ServiceError(
            "wants_no_notice", f"{owner} takes no notices of idle GPUs.", "Tell them yourself."
        )
    announce(
        "work.owner_told", actor=by, cluster=cluster, queue=work.queue.path if work.queue else "",
        subject=f"{work.namespace}/{work.name}",
        after={"owner": work.user, "would_do": row.would_do},
    )  # fmt: skip


def _source(cluster: Cluster, pk: int) -> str:
    day = cluster.now().astimezone(zone(cluster.display_time_zone))
    return f"use {pk} {day:%Y-%m-%d}"


def _lines(row: AskedRow, by: User) -> list[list[str]]:
    used = f"SM activity {percent(row.activity)}, mean"
    if row.memory_total_mib:
        used += f"; memory {memory(row.memory_mib)} of {memory(row.memory_total_mib)}, P95 of runs"
    ran = f"{counted(row.runs, 'run')}, {hours(row.gpu_hours)} GPU-hours"
    return [
        ["Asked for", f"{row.gpus:g} × {row.gpu_class} in {ran}."],
        ["Used", f"{used}."],
        ["Asked by", f"{by.get_username()}."],
        ["Next", f"Ask for {row.would_do} next time. How fast it runs there nobody has tried."],
    ]  # fmt: skip
