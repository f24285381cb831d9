"""What an experiment rests on, in sentences: whose work is lived, how far the world is that of the period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from portal.display.format import counted, number, zone
from portal.display.sentences import and_list
from scheduling.models import Study

Json = Mapping[str, Any]


def work(study: Study) -> str:
    """Of a trace, how its work came to the queues; empty for the cluster's own past."""
    source = study.basis.get("source", {})
    if source.get("kind") != "trace":
        return ""
    parts = [f"The work is that of the trace {source['name']}, on today's queues."]
    named = source.get("by_name", [])
    if named:
        parts.append(f"Queues of the same name take theirs: {and_list(named)}.")
    if source.get("by_share"):
        whose = "each person's work" if source.get("has_users") else "each job"
        queues = counted(source["by_share"], "other queue" if named else "queue")
        parts.append(
            f"Of its {queues} {whose} goes to one leaf, the largest first, each to the leaf with the least"
            " so far for its nominal quota."
        )
    parts.append("A job asks for the class of which its queue has the most nominal quota.")
    if source.get("too_large"):
        parts.append(
            f"{counted(source['too_large'], 'job')} larger than all nodes of its class are left out."
        )
    return " ".join(parts)


def world(study: Study) -> str:
    """How far the world is that of the period."""
    basis = study.basis.get("world", {})
    if basis.get("of") == "today":
        return "Policy, quotas and nodes are those of the day it was asked."
    if basis.get("of") != "then":
        return ""
    return " ".join(_of_then(study, basis))


def _of_then(study: Study, basis: Json) -> Iterator[str]:
    tz = zone(study.cluster.display_time_zone)
    at = datetime.fromisoformat(basis["at"]).astimezone(tz)
    loans = basis["loans"]
    with_loans = f" with {counted(loans, 'loan')}" if loans else ""
    yield f"The world is that of {at.day} {at:%b %Y}: quotas as in force then{with_loans}."
    changes = basis["quota_changes"]
    if changes:
        often = "once" if changes == 1 else f"{changes} times"
        yield f"Quotas changed {often} within it, which is not lived."
    if not basis["policy_kept"]:
        yield "The policy of then is not kept: today's is lived."
    yield from _capacity(basis["gpus"])


def _capacity(gpus: Mapping[str, Json]) -> Iterator[str]:
    classes = [
        f"{name} {number(one['ready'], 1 if one['ready'] % 1 else 0)} of {number(one['installed'])}"
        for name, one in gpus.items()
        if one["ready"] is not None
    ]
    if classes:
        yield f"Ready on average, and lived as whole nodes: {', '.join(classes)}."
    unknown = [name for name, one in gpus.items() if one["ready"] is None]
    if unknown:
        yield f"Nodes of {and_list(unknown)} that were ready then are not kept: today's are lived."
    partly = [
        name for name, one in gpus.items() if one["ready"] is not None and one["known_pct"] < 95
    ]
    if partly:
        yield f"Samples of {and_list(partly)} are not kept of all of it."
