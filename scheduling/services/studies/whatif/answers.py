"""Answers as plain documents: what is kept of a question, and what pages and API show. GPUs are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduling.engine import model as m
from scheduling.engine.reasons.wording import plural, span
from scheduling.services.ledger.past import LedgerPast
from scheduling.services.queues.knobs import BY_FIELD
from scheduling.services.studies.whatif.changes import QuestionChanges
from scheduling.services.studies.whatif.kinds import (
    UNCHANGED,
    ArrivalChange,
    CapacityChange,
    Change,
    ClassChange,
    PolicyChange,
    PriorityChange,
    QueueChange,
    QuotaChange,
)
from scheduling.services.studies.whatif.now import AtOnce, ComparedWork
from scheduling.services.studies.whatif.replay import ReplayResult
from scheduling.simulation.ahead.bands import Band

Json = dict[str, Any]
MOST_LINES = 60
"""Of workloads whose decision changes."""
SETTINGS: Mapping[str, str] = {
    "nominal_gpus": "nominal",
    "borrowing_limit_gpus": "borrowing limit",
    "lending_limit_gpus": "lending limit",
    "weight": "weight",
    "priority": "priority",
    "stop": "stop",
    "max_running": "most running",
    "max_running_per_user": "most running of a user",
    "max_gpus_per_user": "most GPUs of a user",
    "sharing": "above nominal",
    "min_run_time_s": "min run time",
    "max_wait_s": "longest wait",
    "value": "value",
    "preemptible": "preemptible",
}


def title(changes: QuestionChanges) -> str:
    """Of the whole question, short enough for a list."""
    text = "; ".join(short(one) for one in changes.each)
    return text if len(text) <= 200 else f"{text[:197]}…"


def short(change: Change) -> str:
    """'2 nodes h100-80gb more', 'speech h100-80gb: nominal 4'."""
    if isinstance(change, CapacityChange):
        count = abs(change.nodes)
        word = "more" if change.nodes > 0 else "fewer"
        return f"{plural(count, 'node')} {change.gpu_class} {word}"
    if isinstance(change, ArrivalChange):
        return f"{gpus_of(change)} × {' or '.join(change.gpu_classes)} arrives in {change.queue}"
    if isinstance(change, PolicyChange):
        return _policy(change)
    if isinstance(change, ClassChange):
        return f"{change.gpu_class} counts {change.exchange_rate:g}"
    return f"{_subject(change)}: {', '.join(_settings(change))}"


def _policy(change: PolicyChange) -> str:
    """'Half-life of use: 6 d', as the page of the policy calls it."""
    knob, value = BY_FIELD.get(change.setting), change.value
    if value is None:
        value = "no bound"
    elif knob is not None and knob.unit == "s" and not isinstance(value, str):
        value = span(value)
    return f"{knob.name if knob else change.setting}: {value}"


def _subject(change: Change) -> str:
    if isinstance(change, QuotaChange):
        return f"{change.queue} {change.gpu_class}"
    if isinstance(change, QueueChange):
        return change.queue if change.parent is UNCHANGED else f"new queue {change.queue}"
    assert isinstance(change, PriorityChange)  # noqa: S101 - the others have returned
    if change.workload is not UNCHANGED:
        return f"{change.workload} as {change.priority_class}"
    return change.priority_class


def _settings(change: Change) -> Iterable[str]:
    for name, word in SETTINGS.items():
        value = getattr(change, name, UNCHANGED)
        if value is not UNCHANGED:
            number = f"{value:g}" if isinstance(value, float) else str(value)
            yield f"{word} {'no limit' if value is None else number}"


def gpus_of(change: ArrivalChange) -> str:
    """'4 to 8'."""
    least = change.gpus_per_pod * change.pods_min
    most = least if change.pods_max is UNCHANGED else change.gpus_per_pod * change.pods_max
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def of_plans(planned: AtOnce, snapshot: m.Snapshot) -> Json:
    """What two plans of the moment differ in."""
    return {
        "lines": [_line(one) for one in planned.lines if one.is_other][:MOST_LINES],
        "started": len(planned.starts),
        "evicted": len(planned.leaves),
        "lost_gpu_hours": round(planned.lost_gpu_s / 3600, 3),
        "shares": _shares(planned),
        "ready": {name: [a / m.MILLI, b / m.MILLI] for name, (a, b) in planned.ready.items()},
        "pending": sum(w.phase is m.Phase.PENDING for w in snapshot.workloads),
    }


def _line(line: ComparedWork) -> Json:
    after = line.after or line.before
    return {
        "workload": line.workload,
        "queue": line.queue,
        "before": _decided(line.before),
        "after": _decided(line.after),
        "starts": line.starts,
        "leaves": line.leaves,
        "stays_out": line.stays_out,
        "sentence": after.sentence if after else "",
        "lost_gpu_hours": round(line.after.lost_gpu_s / 3600, 3) if line.after else 0,
    }


def _decided(decision: m.Decision | None) -> Json | None:
    if decision is None:
        return None
    return {
        "action": decision.action.value,
        "reason": decision.reason.value,
        "gpu_class": decision.gpu_class,
        "members": decision.members,
    }


def _shares(planned: AtOnce) -> list[Json]:
    """One row a queue and class, milli-GPU made GPUs; exact."""
    return [
        {
            "queue": queue,
            "gpu_class": gpu_class,
            "fair_share": [_gpus(before, "fair_share"), _gpus(after, "fair_share")],
            "potential": [_gpus(before, "potential"), _gpus(after, "potential")],
            "allocated": [_gpus(before, "allocated"), _gpus(after, "allocated")],
            "kept_back": [_gpus(before, "kept_back"), _gpus(after, "kept_back")],
        }
        for queue, by_class in planned.shares.items()
        for gpu_class, (before, after) in by_class.items()
    ]


def _gpus(share: m.Share | None, name: str) -> float:
    return 0.0 if share is None else round(getattr(share, name) / m.MILLI, 3)


def of_futures(
    before: Mapping[str, Band], after: Mapping[str, Band], snapshot: m.Snapshot
) -> list[Json]:
    """Bands of whoever waits, seconds from the answer's moment; null where a future sees no start in time."""
    queue_of = {w.name: w.queue for w in snapshot.workloads}
    names = [*before, *(name for name in after if name not in before)]
    return [
        {
            "workload": name,
            "queue": queue_of.get(name, ""),
            "before": _band(before.get(name)),
            "after": _band(after.get(name)),
        }
        for name in names
    ]


def _band(band: Band | None) -> list[float] | None:
    if band is None or band.p90_s == float("inf"):
        return None
    return [round(band.p50_s), round(band.p90_s)]


def of_replay(found: ReplayResult, past: LedgerPast) -> Json:
    return {
        "begin": past.begin.isoformat(),
        "end": past.end.isoformat(),
        "jobs": found.jobs,
        "replays": found.replays,
        "queues": [
            {
                "queue": one.queue,
                "jobs": one.jobs,
                "p50_s": one.p50_s.document(),
                "p90_s": one.p90_s.document(),
            }
            for one in found.waits
        ],
        "figures": {name: side.document() for name, side in found.figures.items()},
    }


def alone(changes: QuestionChanges, planned: AtOnce, found: ReplayResult) -> Json:
    """What one of the changes does by itself."""
    total = found.waits[-1]
    return {
        "title": title(changes),
        "started": len(planned.starts),
        "evicted": len(planned.leaves),
        "p90_s": total.p90_s.document(),
    }
