"""The demand of an organisation: lived for some weeks in the simulator, then streamed on."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict
from zoneinfo import ZoneInfo

from scheduling.engine import model as m
from scheduling.engine.model import MILLI, Snapshot
from scheduling.models import Cluster, Queue, Quota
from scheduling.services.ledger.demand import book
from scheduling.services.queues import rows as policies
from scheduling.services.queues.own_quotas import Layout, node_gpus
from scheduling.services.snapshot import build as snapshots
from scheduling.simulation.run.jobs import Submission
from workshop.demo import organisation as org
from workshop.demo.cluster.furnish import SimulatedCluster
from workshop.demo.past.alone import play_back
from workshop.demo.past.forecasts import ForecastMoments, Moment
from workshop.demo.past.handover import hand_over
from workshop.demo.past.history import unfinished
from workshop.demo.work import kinds
from workshop.demo.work.arrivals import Arrival, manifest_of
from workshop.scenario import Kind, Organisation, Source, generate, stream
from workshop.simulator.options import SimulatorOptions
from workshop.simulator.simulator import simulate

SEED = 20261119
PLAN_EVERY_S = 120
"""As often as the live demo plans: every two seconds, of a clock that runs 60 times as fast."""
SPELL_S = 3600
"""As often as samples of usage are kept."""
LEAVE_S = 30
"""Grace that victims of the simulated past take to leave."""

FORETOLD = timedelta(days=7)
"""The last part of the lived past, in which starts are forecast as on a live cluster."""

LONGER = 12
"""Factor on the run times of small work: a portal is read better with fewer, longer workloads."""

MOST_GPUS = 16
"""No larger gangs: a cluster of 15 such nodes would stand half empty while it clears room for one."""


def _fitting(kind: Kind) -> Kind:
    return replace(kind, sizes=tuple(s for s in kind.sizes if s.total_gpus <= MOST_GPUS))


LARGE = (_fitting(kinds.PRETRAIN), kinds.SERVICE)
SMALL = (kinds.FINETUNE, kinds.SWEEP, kinds.EVAL, kinds.NOTEBOOK, kinds.CI, kinds.BATCH_INFERENCE)


def _longer(kind: Kind) -> Kind:
    run_time = kind.run_time
    return replace(kind, run_time=replace(run_time, median_s=run_time.median_s * LONGER))


KINDS = {kind.name: kind for kind in (*LARGE, *map(_longer, SMALL))}

Work = Mapping[str, Mapping[str, float]]
"""Leaf -> kind of work -> weight."""
Fallbacks = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Leaf -> GPU class -> further classes that its work may use as well."""


Say = Callable[[str], None]


class Demand(TypedDict):
    users: Mapping[str, Sequence[str]]
    work: Work
    fallbacks: Fallbacks
    load: float


DEMAND: Demand = {
    "users": org.USERS,
    "work": org.WORK,
    "fallbacks": org.FALLBACKS,
    "load": org.LOAD,
}


@dataclass(frozen=True, slots=True)
class PastLife:
    """``moments``: when starts are to be forecast, now that it is known what came."""

    workloads: int
    moments: Sequence[Moment]


def demand_of(
    cluster: Cluster,
    snapshot: Snapshot,
    users: Mapping[str, Sequence[str]],
    work: Work,
    fallbacks: Fallbacks,
    load: float,
) -> Organisation:
    """What ``cluster``'s leaves ask for: of each class in proportion to nominal and half of what they
    may borrow, ``load`` times the ready capacity in all."""
    demand: dict[str, dict[str, float]] = {}
    quotas = Quota.objects.filter(queue__cluster=cluster).in_force(cluster.now())
    for quota in quotas.select_related("queue", "gpu_class"):
        gpus = quota.nominal_gpus + (quota.borrowing_limit_gpus or 0) / 2
        demand.setdefault(quota.queue.name, {})[quota.gpu_class.name] = gpus
    return Organisation(
        sources=tuple(
            Source(
                queue=leaf,
                users=tuple(users[leaf]),
                demand=demand[leaf],
                kinds=tuple((KINDS[name], weight) for name, weight in work[leaf].items()),
                fallback=fallbacks.get(leaf, {}),
            )
            for leaf in users
        ),
        capacity_gpus=ready_gpus(snapshot),
        load=load,
        zone=ZoneInfo(cluster.display_time_zone),
    )


def sensible(cluster: Cluster, submissions: Iterable[Submission]) -> Iterator[Submission]:
    """Those that their queue's limits (nominal and borrowing limit, up to the root) could ever hold:
    people do not ask for what they know they cannot get."""
    limits = _limits(cluster)
    for submission in submissions:
        work = submission.workload
        need = work.gpus * work.members.min
        if any(need <= limits[work.queue, name] for name in work.gpu_classes):
            yield submission


def _limits(cluster: Cluster) -> dict[tuple[str, str], float]:
    """(queue, class) -> the smallest limit from the queue up to the root, milli-GPU."""
    queues = {q.pk: q for q in Queue.objects.filter(cluster=cluster)}
    own: dict[tuple[int, str], float] = {}
    quotas = Quota.objects.filter(queue__cluster=cluster).in_force(cluster.now())
    for quota in quotas.select_related("gpu_class"):
        borrow = quota.borrowing_limit_gpus
        limit = math.inf if borrow is None else quota.nominal_gpus + borrow
        own[quota.queue_id, quota.gpu_class.name] = limit
    names = {name for _, name in own}
    limits = {}
    for queue in queues.values():
        for name in names:
            limit, above = math.inf, queue
            while above.parent_id is not None:
                limit = min(limit, own.get((above.pk, name), 0.0))
                above = queues[above.parent_id]
            limits[queue.name, name] = limit
    return limits


def ready_gpus(snapshot: Snapshot) -> dict[str, float]:
    """Class -> GPUs on nodes that can be scheduled to."""
    ready = dict.fromkeys((c.name for c in snapshot.gpu_classes), 0.0)
    for node in snapshot.nodes:
        if node.ready:
            ready[node.gpu_class] += (node.gpus - node.foreign_gpus) / MILLI
    return ready


def live(
    played: SimulatedCluster,
    *,
    users: Mapping[str, Sequence[str]],
    work: Work,
    fallbacks: Fallbacks,
    load: float,
    since: datetime,
    until: datetime,
    say: Say,
) -> PastLife:
    """Live from ``since`` to ``until`` in the simulator with the shipped engine, write the ledger, and
    hand what has not ended over to the cluster. ``say`` hears how far it is, day by day."""
    cluster = played.cluster
    template = replace(snapshots.live(cluster), now=since, workloads=())
    organisation = demand_of(cluster, template, users, work, fallbacks, load)
    demand = sensible(cluster, generate(organisation, since, _days(since, until), SEED))
    return _live(played, template, demand, until, say)


def relive(
    played: SimulatedCluster,
    recorded: Iterable[Submission],
    *,
    since: datetime,
    until: datetime,
    say: Say,
) -> PastLife:
    """The same with what was ``recorded`` from ``since`` on, in order of its submission."""
    template = replace(snapshots.live(played.cluster), now=since, workloads=())
    return _live(played, template, sensible(played.cluster, recorded), until, say)


def _days(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds() / 86400


def _live(
    played: SimulatedCluster,
    template: Snapshot,
    submissions: Iterable[Submission],
    until: datetime,
    say: Say,
) -> PastLife:
    history = ForecastMoments(played.cluster, until - FORETOLD)
    for gpu_class, (installed, ready) in capacity(template).items():
        history.usage.capacity(gpu_class, installed=installed, ready=ready)
    lived = replace(template, queues=tuple(map(unplayed, template.queues)))
    followed = _followed(submissions, template.now, until, say)
    with _without_collection():
        outcome = simulate(lived, followed, options=options(until), observer=history)
        history.close(until)
        say("Writing the ledger")
        _play_back(played.cluster, template, history)
        hand_over(played, history, unfinished(outcome.jobs))
        history.save()
    book(played.cluster, since=template.now)
    return PastLife(len(outcome.jobs), history.moments)


@contextmanager
def _without_collection() -> Iterator[None]:
    """What is lived stays until it is written: to look for garbage among it takes a quarter of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _followed(
    submissions: Iterable[Submission], since: datetime, until: datetime, say: Say
) -> Iterator[Submission]:
    """The same, which says how many days are lived as time passes."""
    days, last = round(_days(since, until)), 0
    for one in submissions:
        lived = min(days, int(_days(since, one.submitted)))
        if lived > last:
            say(f"Lived {lived} of {days} days")
            last = lived
        yield one


def options(until: datetime) -> SimulatorOptions:
    """How time passes in the past of a demo."""
    return SimulatorOptions(
        cycle_s=PLAN_EVERY_S,
        leave_s=LEAVE_S,
        until=until,
        spell_s=SPELL_S,
        speeds={pool.gpu_class: pool.speed for pool in org.POOLS},
    )


def _play_back(cluster: Cluster, template: Snapshot, history: ForecastMoments) -> None:
    """When each would have begun on its own quota."""
    rows = policies.load(cluster, at=cluster.now())
    layout = Layout.of(rows, node_gpus((node.gpu_class, node.gpus) for node in template.nodes))
    play_back(history.workloads.values(), layout, cluster)


def unplayed(queue: m.Queue) -> m.Queue:
    """The simulator that lives the past plays nobody's own quota along."""
    return replace(queue, played_along=False, evictions_left=None)


def capacity(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Class -> (installed, ready) milli-GPU."""
    found = dict.fromkeys((c.name for c in snapshot.gpu_classes), (0, 0))
    for node in snapshot.nodes:
        installed, ready = found[node.gpu_class]
        found[node.gpu_class] = (installed + node.gpus, ready + node.gpus * node.ready)
    return found


def arrivals(
    cluster: Cluster,
    *,
    users: Mapping[str, Sequence[str]],
    work: Work,
    fallbacks: Fallbacks,
    load: float,
    since: datetime,
) -> Iterator[Arrival]:
    """The same organisation's submissions from ``since`` on, without end."""
    template = snapshots.live(cluster)
    organisation = demand_of(cluster, template, users, work, fallbacks, load)
    queues = {q.name: q for q in Queue.objects.filter(cluster=cluster)}
    classes = {c.name: c for c in cluster.gpu_classes.all()}
    for number, submission in enumerate(sensible(cluster, stream(organisation, since, SEED))):
        submitted = submission.workload
        manifest = manifest_of(submission, submitted.name, queues[submitted.queue], classes)
        yield Arrival(number, submitted.submitted, manifest, submitted.user)
