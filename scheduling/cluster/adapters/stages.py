"""Replicated Jobs of a JobSet that start after others of it, and which of them may have pods by now.

``dependsOn`` names those that have to be Ready or Complete before (KEP-672 of JobSet); under the startup
policy InOrder each waits until all before it are ready. Both are said of whole Jobs, not of pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

COUNTS_AS_READY = ("ready", "succeeded", "failed")
"""One that ended was ready before."""
COUNTS_AS_STARTED = ("active", *COUNTS_AS_READY)


def later(job_set: Json) -> dict[str, bool]:
    """Names of the replicated Jobs that start after others -> whether they may have started."""
    spec, status = job_set["spec"], job_set.get("status") or {}
    counts = {each["name"]: each for each in status.get("replicatedJobsStatus") or []}
    jobs = spec.get("replicatedJobs") or []
    sizes = {job["name"]: int(job.get("replicas", 1)) for job in jobs}
    in_order = (spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    found: dict[str, bool] = {}
    for place, job in enumerate(jobs):
        awaited = [*_awaited(job), *((each["name"], False) for each in jobs[:place] if in_order)]
        if awaited:
            reached = all(_is_there(counts, sizes, name, over) for name, over in awaited)
            found[job["name"]] = reached or _count(counts, job["name"], COUNTS_AS_STARTED) > 0
    return found


def _awaited(job: Json) -> Iterator[tuple[str, bool]]:
    """(name, whether it has to be over) of those that ``job`` depends on."""
    for each in job.get("dependsOn") or []:
        yield each["name"], each.get("status") == "Complete"


def _is_there(counts: Mapping[str, Json], sizes: Mapping[str, int], name: str, over: bool) -> bool:
    names = ("succeeded",) if over else COUNTS_AS_READY
    return name in counts and _count(counts, name, names) == sizes.get(name)


def _count(counts: Mapping[str, Json], name: str, states: tuple[str, ...]) -> int:
    return sum(int(counts.get(name, {}).get(state) or 0) for state in states)
