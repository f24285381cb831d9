"""Twenty clusters on one portal: their overviews for an admin who sees all, and plans of each by one process.

A reader at a time, so that what a page takes is seen and not who stands in line before it; `bench pages` has
the crowd. Plans are of one process, one after the other, as an engine for several clusters makes them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import requests

from scheduling.engine import Frame, encode, plan_frame
from workshop.benches.engine.large import LargeLoad, fill, organisation
from workshop.benches.engine.outcomes import Outcome, Progress
from workshop.benches.worker.large import NoPortalError, Person, Portal, large_portal
from workshop.benches.worker.pages import TIMEOUT_S, TIMING
from workshop.simulator.carry_out import carry_out

CLUSTERS, NODES = 20, 2_500
ROUNDS = 5
"""Of the overviews of all, and of the plans of all."""
SESSIONS = 25
LIMIT_MS, LIMIT_S = 300.0, 2.0
EACH = LargeLoad(nodes=NODES, leaves=250, running=5_000, pending=25_000, changes=300)
SEED = 42


@dataclass(frozen=True, slots=True)
class OverviewCost:
    """One overview: milliseconds until it was there, CPU milliseconds of the server, queries."""

    ms: float
    cpu_ms: float
    queries: int


def run_many_clusters(_traces: Path, progress: Progress) -> Outcome:
    """Raises NoPortalError, PartsError."""
    size = ("--clusters", str(CLUSTERS), "--nodes", str(NODES))
    with large_portal(progress, SESSIONS, *size) as portal:
        shown = _overviews(portal, progress)
    progress(f"{CLUSTERS} clusters of {NODES} nodes are planned by one process")
    return Outcome(_of_pages(shown) | _planned(), seeds=[SEED], notes=_notes())


def _overviews(portal: Portal, progress: Progress) -> list[OverviewCost]:
    admin = next(one for one in portal.people if one.persona == "admin")
    progress(f"{admin.user} looks at {CLUSTERS} clusters")
    names = ["large", *(f"large-{number:02}" for number in range(1, CLUSTERS))]
    with requests.Session() as session:
        session.cookies.set(admin.cookie, admin.value)
        for name in names:
            _overview(session, portal, admin, name)
        return [_overview(session, portal, admin, name) for _ in range(ROUNDS) for name in names]


def _overview(session: requests.Session, portal: Portal, who: Person, cluster: str) -> OverviewCost:
    began = time.monotonic()
    answer = session.get(f"{portal.base}/c/{cluster}/", timeout=TIMEOUT_S)
    ms = 1000 * (time.monotonic() - began)
    timing = TIMING.search(answer.headers.get("Server-Timing", ""))
    if answer.status_code != 200 or timing is None:
        raise NoPortalError(f"{who.user} got {answer.status_code} of the overview of {cluster}.")
    return OverviewCost(ms, float(timing[3]), int(timing[2]))


def _of_pages(shown: list[OverviewCost]) -> dict[str, float]:
    ms = np.array([one.ms for one in shown])
    return {
        "clusters": CLUSTERS,
        "overviews": len(shown),
        "overview_p50_ms": round(float(np.median(ms)), 1),
        "overview_p95_ms": round(float(np.percentile(ms, 95)), 1),
        "overview_cpu_ms": round(float(np.mean([one.cpu_ms for one in shown])), 1),
        "overview_queries": max(one.queries for one in shown),
        "overview_p95_to_limit": round(float(np.percentile(ms, 95)) / LIMIT_MS, 2),
    }


def _planned() -> dict[str, float]:
    """CPU seconds of one plan: from scratch, and after a hundredth of the work changed."""
    plan_frame(encode(organisation(LargeLoad(nodes=8, leaves=4))))
    dice = np.random.default_rng(SEED)
    frames = [_frame(dice) for _ in range(CLUSTERS)]
    scratch = [_plan(frame) for frame in frames]
    changed = [_changed(frame, dice) for _ in range(ROUNDS) for frame in frames]
    return {
        "scratch_s": round(max(scratch), 3),
        "change_s": round(float(np.mean(changed)), 4),
        "change_max_s": round(max(changed), 3),
        "round_s": round(float(np.sum(changed)) / ROUNDS, 2),
        "cycle_to_limit": round(max(*scratch, *changed) / LIMIT_S, 2),
    }


def _frame(dice: np.random.Generator) -> Frame:
    frame = encode(organisation(EACH))
    fill(frame, EACH, EACH.running, dice, busy=True)
    carry_out(frame, plan_frame(frame))
    fill(frame, EACH, EACH.pending, dice)
    frame.forget()
    return frame


def _plan(frame: Frame) -> float:
    began_s = time.process_time()
    made = plan_frame(frame)
    took_s = time.process_time() - began_s
    carry_out(frame, made)
    return took_s


def _changed(frame: Frame, dice: np.random.Generator) -> float:
    frame.now += 5.0
    running = np.flatnonzero(frame.work.phase == 2)
    for slot in dice.choice(running, size=EACH.changes // 2, replace=False):
        frame.finish(int(slot))
    fill(frame, EACH, EACH.changes // 2, dice)
    return _plan(frame)


def _notes() -> list[str]:
    return [
        f"limits: {LIMIT_MS:.0f} ms an overview, {LIMIT_S:.0f} s a cycle",
        f"a plan: {EACH.nodes} nodes, {EACH.leaves} leaves, {EACH.running} running, {EACH.pending} waiting;"
        " round_s is of one after the other for all clusters. Reading the API server and writing the ledger"
        " are not in it",
    ]
