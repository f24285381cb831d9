"""What a person submits again: the last of each kind, and what would become of one of them now."""

from __future__ import annotations

from typing import Any

from django.db.models import Max
from django.http import Http404

from portal.accounts.models import User
from portal.boundary.reading import whole_or
from portal.web.frame.requests import PersonRequest
from portal.web.mine.active import own
from portal.web.workloads.submit import form_of, outlook_of
from scheduling.models import Cluster, Workload

KINDS = 3
"""Of work, offered to be submitted again."""


def again(cluster: Cluster, user: User) -> list[dict[str, Any]]:
    """The last workload of each queue and type that the person used, the newest first."""
    mine = own(cluster, user).order_by()
    newest = mine.values("queue", "type").annotate(last=Max("submitted_at")).order_by("-last")
    times = newest.values("last")[:KINDS]
    found: dict[tuple[int | None, str], Workload] = {}
    for work in mine.filter(submitted_at__in=times).order_by("-submitted_at", "-id"):
        found.setdefault((work.queue_id, work.type), work)
    return [
        {"work": work, "is_first": i == 0} for i, work in enumerate(list(found.values())[:KINDS])
    ]


def ahead(request: PersonRequest, cluster: Cluster) -> dict[str, Any]:
    """For a template: what the submit page would say of the workload that the address clones, class by class,
    those left out on which it can never run. Raises Http404 for what is not the person's own."""
    uid = request.GET.get("clone", "")
    work = own(cluster, request.user).filter(uid=uid).first()
    if work is None:
        raise Http404
    form, _ = form_of(request, cluster)
    outlook = outlook_of(request, cluster, form)
    rows = [row for row in outlook.rows if row.verdict.tone != "err"] if outlook else []
    tries = whole_or(request.GET.get("tries", "0"), 0)
    return {"cluster": cluster, "work": work, "outlook": outlook, "rows": rows, "tries": tries}
