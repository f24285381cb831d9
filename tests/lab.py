"""An experiment over the example organisation's past."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from scheduling.models import Cluster, PriorityClass, Study, Variant, Workload, WorkloadType
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import running
from scheduling.services.studies.experiments import asking as experiments
from tests.factories import NOW
from tests.foresight import live_of, with_past

CHANGES = {
    "name": "Less for speech",
    "changes": [{"kind": "quota", "queue": "speech", "gpu_class": "h100-80gb", "nominal_gpus": 4}],
}
NODES = {
    "name": "2 nodes more",
    "changes": [{"kind": "capacity", "gpu_class": "h100-80gb", "nodes": 2}],
}
ORDER = {
    "name": "Shortest first",
    "changes": [{"kind": "policy", "setting": "order", "value": "shortest_predicted"}],
}


def with_work(cluster: Cluster) -> None:
    """The past of the forecasts, in a priority class, so that it can be lived again; close enough to wait."""
    with_past(cluster)
    training = PriorityClass.objects.filter(type=WorkloadType.TRAINING).order_by("name").first()
    past = Workload.objects.filter(cluster=cluster, uid__startswith="past-")
    past.update(priority_class=training, used_gpu_s=F("used_gpu_s") * 6)


def empty_experiment(
    cluster: Cluster, name: str = "vermilion-experiment", author: str = "lead"
) -> Study:
    """One of A and B, of which nothing is lived."""
    made = Study.objects.create(
        cluster=cluster, kind="experiment" if author else "adapting", name=name, author=author,
        begin=NOW - timedelta(days=2), end=NOW - timedelta(days=1), replays=1, asked_at=NOW,
        basis={"jobs": 0, "source": {"kind": "ledger"}, "world": {}, "recorded": {}},
    )  # fmt: skip
    for letter, changes in (("A", []), ("B", CHANGES["changes"])):
        Variant.objects.create(study=made, letter=letter, name=name, changes=changes)
    return made


def asked(**more) -> experiments.Question:
    """Five days judged after two of warm-up, six replays, two variants beside A."""
    told = {
        "name": "Order and supply",
        "begin": NOW - timedelta(days=8),
        "end": NOW - timedelta(days=3),
        "warm_up": timedelta(days=2),
        "replays": 6,
        "variants": (ORDER, CHANGES),
    }
    return experiments.Question(**{**told, **more})


def experiment(cluster: Cluster, monkeypatch, **more) -> Study:
    """Written down, nothing lived yet."""
    monkeypatch.setattr(snapshots, "live", live_of)
    return experiments.ask(cluster=cluster, author="admin", question=asked(**more))


def lived(cluster: Cluster, monkeypatch, **more) -> Study:
    made = experiment(cluster, monkeypatch, **more)
    while running.work(made.pk):
        pass
    return made
