"""Celery envelopes: ids in, one service call, safe to run twice.

Each cluster has its own Celery queue (``cluster-NAME``), so a slow one delays no other. Cycles are asked
for by the clock of the process that runs them and by the mirror; of the latter at most one waits at a time.
"""

from __future__ import annotations

import logging
import threading
from functools import partial

from celery import shared_task
from django.utils import timezone

from scheduling.cluster.connection.client import ApiError
from scheduling.cluster.metrics import MetricsError
from scheduling.engine.model import SnapshotError
from scheduling.models import Cluster, ClusterMode
from scheduling.services import events, run_times
from scheduling.services.clusters import guardrails
from scheduling.services.explain import fragmentation
from scheduling.services.ledger import demand, workdays
from scheduling.services.ledger import demand_forecasts as demand_ahead
from scheduling.services.ledger import retention as retention_service
from scheduling.services.ledger import rollup as rollup_service
from scheduling.services.starts import refresh
from scheduling.services.studies import doors as studies
from scheduling.services.studies import running
from scheduling.services.studies.adapting import steps as adapting
from scheduling.services.studies.capacity import asking as capacity
from scheduling.services.worker import cycles, lanes
from scheduling.services.worker.cluster_turns import held_of
from scheduling.services.worker.consuming import queue_of
from scheduling.services.workloads import measure as measuring

log = logging.getLogger(__name__)

FORECAST_EXPIRES_S = 10.0
DEMAND_EXPIRES_S = 600.0
LEARN_EXPIRES_S = 300.0
PREDICT_EXPIRES_S = 30.0
HEARTBEAT_EXPIRES_S = 10.0
LOOK_EXPIRES_S = 300.0
FAST = 10
"""Clock speed above which a cluster is cleaned up with every roll-up."""

_waiting: set[int] = set()
_lock = threading.Lock()


@shared_task(name="scheduling.tasks.run_cycle")
def run_cycle(cluster_id: int, trigger: str = "timer") -> None:
    """One cycle; the mirror it leaves behind asks for the next when the cluster changes."""
    with _lock:
        _waiting.discard(cluster_id)
    name = Cluster.objects.filter(pk=cluster_id).values_list("name", flat=True).first()
    if name is None:
        log.info("cluster %s is gone", cluster_id)
        return
    try:
        cycles.run_cycle(
            cluster_id, trigger=trigger, on_change=partial(ask_for_cycle, cluster_id, name)
        )
    except ApiError as error:
        # The next tick tries again; a traceback every few seconds would hide everything else.
        log.warning("cluster %s: %s", name, error)


def ask_for_cycle(cluster_id: int, name: str) -> None:
    """Put a cycle on the cluster's queue unless one asked for by an event waits there already."""
    with _lock:
        if cluster_id in _waiting:
            return
        _waiting.add(cluster_id)
    # It does not expire: the change that it was asked for would then wait for the timer.
    run_cycle.apply_async(args=[cluster_id, "event"], queue=queue_of(name))


@shared_task(name="scheduling.tasks.guard")
def guard(cluster_id: int) -> None:
    """One pass over the guardrails, in the process that runs the cluster's cycles: it holds the lease."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        log.info("cluster %s is gone", cluster_id)
        return
    try:
        cluster_turn = held_of(cluster, on_change=partial(ask_for_cycle, cluster_id, cluster.name))
        guardrails.guard(cluster, cluster_turn.link)
    except ApiError as error:
        log.warning("cluster %s, guardrails: %s", cluster.name, error)


@shared_task(name="scheduling.tasks.measure")
def measure(cluster_id: int) -> None:
    """One look, in the process that runs the cluster's cycles: its mirror knows whose each pod is."""
    cluster = Cluster.objects.filter(pk=cluster_id).exclude(metrics_url="").first()
    if cluster is None:
        log.info("cluster %s is gone, or nobody measures it", cluster_id)
        return
    cluster_turn = held_of(cluster, on_change=partial(ask_for_cycle, cluster_id, cluster.name))
    if not cluster_turn.link.mirror.wait_synced(0):
        return
    try:
        measuring.measure(cluster, cluster_turn.link.mirror)
    except (ApiError, MetricsError) as error:
        log.warning("cluster %s, GPU metrics: %s", cluster.name, error)


@shared_task(name="scheduling.tasks.request_forecasts")
def request_forecasts() -> None:
    """Ask for a pass of start forecasts over every cluster; each decides whether its budget allows one."""
    for pk in Cluster.objects.exclude(mode=ClusterMode.PAUSED).values_list("pk", flat=True):
        forecast_starts.apply_async(args=[pk], expires=FORECAST_EXPIRES_S)


@shared_task(name="scheduling.tasks.forecast_starts")
def forecast_starts(cluster_id: int) -> None:
    """A pass of start forecasts, apart from the process that runs the cycles: it never delays one."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        log.info("cluster %s is gone", cluster_id)
        return
    try:
        refresh.refresh(cluster)
    except (ApiError, OSError, SnapshotError) as error:
        log.warning("cluster %s, start forecasts: %s", cluster.name, error)


@shared_task(name="scheduling.tasks.answer_study")
def answer_study(study_id: int) -> None:
    """One that somebody waits for; one that is gone, has ended or is worked on is left alone."""
    running.work(study_id)


@shared_task(name="scheduling.tasks.live_study")
def live_study(study_id: int) -> None:
    """Some lives of a study; the next task goes on with the rest or with another study, so that other work
    has its turn between them."""
    if running.work(study_id):
        live_study.apply_async(args=[study_id])
        return
    for pk in running.unattended()[:1]:
        studies.send(pk)


@shared_task(name="scheduling.tasks.request_studies")
def request_studies() -> None:
    """Go on with studies that nobody works on, those of a killed worker too; ask for a look at every cluster
    where the night or a trial brings one."""
    for pk in running.unattended():
        studies.send(pk)
    for cluster in Cluster.objects.all():
        if adapting.is_due(cluster) or capacity.is_due(cluster, timezone.now()):
            look_for_studies.apply_async(args=[cluster.pk], expires=LOOK_EXPIRES_S)


@shared_task(name="scheduling.tasks.look_for_studies")
def look_for_studies(cluster_id: int) -> None:
    """What nobody asks for; not on the queue of the cluster's cycles."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        log.info("cluster %s is gone", cluster_id)
        return
    adapting.look(cluster)
    capacity.look(cluster)


@shared_task(name="scheduling.tasks.roll_up")
def roll_up() -> None:
    """Minutes into hours, hours into days."""
    for cluster in Cluster.objects.all():
        fragmentation.book(cluster)
        rollup_service.roll_up(cluster)
        if cluster.clock_speed > FAST:
            # A day passes in minutes there: an hourly clean-up would come weeks late.
            workdays.roll_days(cluster)
            _retain(cluster)


@shared_task(name="scheduling.tasks.roll_up_days")
def roll_up_days() -> None:
    """What work held and how it ended, by day."""
    for cluster in Cluster.objects.all():
        workdays.roll_days(cluster)


@shared_task(name="scheduling.tasks.request_demand")
def request_demand() -> None:
    """Ask for what every cluster is and will be asked for."""
    for pk in Cluster.objects.values_list("pk", flat=True):
        book_demand.apply_async(args=[pk], expires=DEMAND_EXPIRES_S)


@shared_task(name="scheduling.tasks.book_demand")
def book_demand(cluster_id: int) -> None:
    """Demand of the last hours, and once a day what comes; not on the queue of the cluster's cycles."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        log.info("cluster %s is gone", cluster_id)
        return
    demand.book(cluster)
    demand_ahead.look_ahead(cluster, most=demand_ahead.MOST_AT_ONCE)


@shared_task(name="scheduling.tasks.request_learning")
def request_learning() -> None:
    """Ask for a new model of every cluster where enough has run since the last was learned."""
    for cluster in Cluster.objects.all():
        if run_times.is_due(cluster=cluster):
            learn.apply_async(args=[cluster.pk], expires=LEARN_EXPIRES_S)


@shared_task(name="scheduling.tasks.learn")
def learn(cluster_id: int) -> None:
    """A new version of the cluster's run-time model, if enough has ended; not on the queue of its cycles."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        log.info("cluster %s is gone", cluster_id)
        return
    run_times.learn(cluster=cluster)


@shared_task(name="scheduling.tasks.request_predictions")
def request_predictions() -> None:
    """Ask for the predictions of every cluster to be renewed."""
    for pk in Cluster.objects.values_list("pk", flat=True):
        predict.apply_async(args=[pk], expires=PREDICT_EXPIRES_S)


@shared_task(name="scheduling.tasks.predict")
def predict(cluster_id: int) -> None:
    """What is predicted of the cluster's workloads, in rows; cycles read those and wait for none."""
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        log.info("cluster %s is gone", cluster_id)
        return
    run_times.predict(cluster=cluster)


@shared_task(name="scheduling.tasks.retention")
def retention() -> None:
    """Drop what is older than it is kept."""
    for cluster in Cluster.objects.all():
        _retain(cluster)


def _retain(cluster: Cluster) -> None:
    retention_service.retain(cluster)
    studies.forget(cluster)
    adapting.forget(cluster)


@shared_task(name="scheduling.tasks.heartbeat")
def heartbeat() -> None:
    """Write down what waits in each lane, and send a heartbeat through every one but its own."""
    for name in lanes.attended(lanes.measure()):
        answer_heartbeat.apply_async(args=[name], queue=name, expires=HEARTBEAT_EXPIRES_S)


@shared_task(name="scheduling.tasks.answer_heartbeat")
def answer_heartbeat(lane: str) -> None:
    """Taken out of ``lane`` by a worker that serves it."""
    lanes.serve(lane)


@shared_task(name="scheduling.tasks.deliver")
def deliver() -> None:
    """Events that a kill or a failing subscriber left."""
    events.deliver_due()
