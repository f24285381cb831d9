"""The cluster as the mirror holds it now, projected into the rows in memory: what a plan starts from."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from scheduling.cluster.adapters import Sighting
from scheduling.cluster.picture import compose as pictures
from scheduling.cluster.picture.compose import Picture
from scheduling.models import ClusterMode
from scheduling.services.clusters.connection import ClusterLink
from scheduling.services.cycle.changes import Changes
from scheduling.services.cycle.memory import Memory, Rows
from scheduling.services.cycle.view import View
from scheduling.services.queues.rows import PolicyRows
from scheduling.services.snapshot.at_once import at_limit, hindered
from scheduling.services.snapshot.obstacles import Obstacle, all_blocked, barred, left_out
from scheduling.services.snapshot.situations import WorkloadFacts
from scheduling.services.snapshot.starts_under_way import suppose


@dataclass(frozen=True, slots=True)
class _Sight:
    """What shows, and what is known of it. ``known`` grows with each step of the look."""

    picture: Picture
    changes: Changes
    known: dict[str, WorkloadFacts]
    blocked: dict[str, Obstacle]
    """Engine name -> what keeps it from being started."""
    left_out: Mapping[str, str]


def look(link: ClusterLink, memory: Memory, tables: Rows, rows: PolicyRows, now: datetime) -> View:
    """``kept``: the rows that this pass writes; ``rows``: the policy that it is planned under."""
    projection = tables.projection
    # Before the picture: a start that ends in between is seen in it, and never missed in both.
    lag_s, under_way = round(link.mirror.lag_s(), 1), link.enforcer.starts.under_way()
    seen = _see(link, memory, tables, rows, now)
    supposed = suppose(seen.picture, seen.known, under_way)
    turned = supposed.among(projection.suspects(memory.refusals))
    live = ChainMap(projection.by_name, seen.changes.ended())
    late = memory.others_of(rows.cluster).late(turned, supposed.known, live)
    memory.turns = hindered(seen.known, late, memory.turns)
    supposed.known.update(memory.turns)
    full = at_limit(supposed.picture.workloads, supposed.known, rows)
    memory.at_limit = hindered(seen.known, full, memory.at_limit)
    supposed.known.update(memory.at_limit)
    enforces = rows.cluster.mode == ClusterMode.ENFORCE
    leaving = projection.claims.leaving(seen.known, projection.by_name) if enforces else {}
    supposed.known.update(leaving)
    blocked = seen.blocked | {observed.key: why for observed, why in (*late, *full)}
    unsent = [projection.rows[uid] for uid in leaving]
    return View(
        rows.cluster, seen.picture, rows, seen.known, now, seen.changes, supposed, blocked, lag_s,
        seen.left_out, unsent,
    )  # fmt: skip


def _see(
    link: ClusterLink, memory: Memory, tables: Rows, rows: PolicyRows, now: datetime
) -> _Sight:
    projection, enforces = tables.projection, rows.cluster.mode == ClusterMode.ENFORCE
    taken = pictures.take(
        link.mirror, rows.class_specs, memory.memo, awaited=projection.rows.keys()
    )
    picture = memory.failed.put(taken)
    changes, known = projection.project(picture, rows, now=now, enforce=enforces)
    memory.causes.hear_of_work(changes, now)
    grace_s = rows.cluster.stale_gang_grace_s
    projection.note_missing_members(known, changes, now=now, grace_s=grace_s)
    memory.failed.note(projection.restless, known, now)
    memory.refusals.forget(picture.by_uid)
    blocked, said = _bar(memory, tables, known, now)
    return _Sight(picture, changes, known, blocked, said)


def _bar(
    memory: Memory, tables: Rows, known: dict[str, WorkloadFacts], now: datetime
) -> tuple[dict[str, Obstacle], dict[str, str]]:
    """What keeps work from being started, and of which nodes it is left out; ``known`` is told both."""
    suspects: list[Sighting] = list(tables.projection.suspects(memory.refusals))
    found = all_blocked(suspects, memory.refusals, now=now, barred=tables.projection.barred)
    for observed, why in found:
        known[observed.uid] = replace(known[observed.uid], blocked=why)
    unfit = barred(suspects, now)
    known |= {uid: replace(known[uid], barred=nodes) for uid, nodes in unfit.items()}
    said = {o.key: left_out(o, nodes) for o in suspects if (nodes := unfit.get(o.uid))}
    return {observed.key: why for observed, why in found}, said
