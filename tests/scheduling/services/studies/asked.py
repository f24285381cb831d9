"""Ten questions of each kind of study, and their answers as plain documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from portal.accounts.models import User
from portal.reports.capacity import capacity as capacity_report
from scheduling.models import Announcement, Cluster, Queue
from scheduling.services.studies import running
from scheduling.services.studies import what_if as questions
from scheduling.services.studies.adapting import steps
from scheduling.services.studies.adapting.documents import document as adapting_document
from scheduling.services.studies.capacity import asking as capacities
from scheduling.services.studies.experiments import asking as experiments
from scheduling.services.studies.experiments.past import TraceQuestion
from scheduling.services.studies.experiments.promoting import lacking
from scheduling.services.studies.experiments.results import document, results
from tests.adapting import BETTER, WORSE, answer, checked, later, stepped
from tests.adapting import asked as trial_asked
from tests.factories import NOW
from tests.lab import CHANGES, NODES, ORDER

Json = dict[str, Any]
H100 = "h100-80gb"
SPEECH = {"kind": "quota", "queue": "speech", "gpu_class": H100}
WHAT_IFS: Mapping[str, Json] = {
    "quota": {"document": [{**SPEECH, "nominal_gpus": 4}]},
    "no borrowing": {"document": [{**SPEECH, "borrowing_limit_gpus": 0}], "days": 3},
    "nodes more": {"document": [{"kind": "capacity", "gpu_class": H100, "nodes": 2}]},
    "nodes fewer": {"document": [{"kind": "capacity", "gpu_class": H100, "nodes": -3}], "days": 2},
    "class": {"document": [{"kind": "class", "gpu_class": H100, "exchange_rate": 3}], "days": 2},
    "policy": {"document": [{"kind": "policy", "setting": "order", "value": "arrival"}]},
    "queue": {"document": [{"kind": "queue", "queue": "speech", "max_running": 1}], "days": 4},
    "arrival": {
        "document": [{"kind": "arrival", "queue": "speech", "gpu_classes": [H100], "gpus_per_pod": 8}],
        "replays": False,
    },
    "two": {"document": [*NODES["changes"], *CHANGES["changes"]], "days": 3},
    "edit": {"document": CHANGES["changes"], "base": [{**SPEECH, "nominal_gpus": 16}]},
}  # fmt: skip
CAPACITIES: Mapping[str, Json] = {
    "as it is": {"days": 1, "steps": ()},
    "two days": {"days": 2, "steps": ()},
    "a node more": {"days": 1, "steps": (1,)},
    "a node fewer": {"days": 1, "steps": (-1,)},
    "parts": {"days": 1, "steps": (1,), "step_gpus": 4},
    "fewer in part": {"days": 1, "steps": (-1,), "step_gpus": 3},
    "six lives": {"days": 1, "steps": (), "replications": 6},
    "earlier": {"days": 1, "steps": (), "end": NOW - timedelta(days=5)},
    "own quota": {"days": 2, "steps": (1,), "queue": "speech"},
    "own quota in steps": {"days": 2, "steps": (-1, 2), "queue": "speech", "step_gpus": 2},
}
WEIGHT = {"name": "Weight", "changes": [{**SPEECH, "weight": 3}]}
FIRST = {
    "name": "Arrival", "changes": [{"kind": "policy", "setting": "order", "value": "arrival"}],
}  # fmt: skip
SWF = "\n".join(
    ["; UnixStartTime: 1760000000", "; MaxProcs: 64"]
    + [
        f"{n} {n * 1800} 0 {3600 + 60 * n} 8 -1 -1 8 7200 -1 1 {n % 3} 1 1 0 -1 -1 -1"
        for n in range(1, 60)
    ]
)
EXPERIMENTS: Mapping[str, Json] = {
    "quota": {"variants": (CHANGES,), "replays": 5},
    "nodes": {"variants": (NODES,), "replays": 5},
    "order": {"variants": (ORDER,), "replays": 5},
    "weight": {"variants": (WEIGHT,), "replays": 2},
    "three": {"variants": (CHANGES, NODES, FIRST), "replays": 6},
    "alone": {"variants": (), "replays": 2},
    "once": {"variants": (NODES, FIRST), "is_drawn": False},
    "without warm-up": {"variants": (NODES,), "replays": 5, "warm_up": timedelta(0)},
    "of today": {"variants": (CHANGES,), "replays": 5, "of_today": True},
    "trace": {
        "variants": (NODES,), "replays": 2, "begin": None, "end": None, "warm_up": timedelta(0),
        "trace": TraceQuestion("small.swf", SWF.encode()),
    },
}  # fmt: skip


def _judged(told: Mapping[str, Mapping[str, float]]) -> Callable[[Cluster], None]:
    def live(cluster: Cluster) -> None:
        answer(trial_asked(cluster).study, told)
        steps.look(cluster)

    return live


def _checked(*each: Mapping[str, float]) -> Callable[[Cluster], None]:
    def live(cluster: Cluster) -> None:
        stepped(cluster)
        for told in each:
            checked(cluster, told)

    return live


def _twice(cluster: Cluster) -> None:
    _judged({})(cluster)
    later(cluster, days=1, minutes=1)
    _judged({"B": BETTER})(cluster)


ADAPTINGS: Mapping[str, Callable[[Cluster], Any]] = {
    "asked": trial_asked,
    "no better": _judged({}),
    "worse": _judged({"B": WORSE, "C": WORSE}),
    "step down": _judged({"B": BETTER}),
    "step up": stepped,
    "paid for": _judged({"C": {**BETTER, "evictions": 20.0}}),
    "checked": _checked({}),
    "taken back": _checked(WORSE),
    "a week": _checked(*[BETTER] * 8),
    "next parameter": _twice,
}


def what_if(cluster: Cluster, more: Json) -> Json:
    if "base" in more:
        question = questions.ask_of_edit(cluster=cluster, author="admin", **more)
    else:
        question = questions.ask(cluster=cluster, author="admin", **more)
    running.work(question.pk)
    question.refresh_from_db()
    return {
        "title": question.name, "state": question.state, "fault": question.fault,
        "kind": question.kind, "answer": question.answer,
    }  # fmt: skip


def capacity(cluster: Cluster, more: Json) -> Json:
    queue = Queue.objects.get(cluster=cluster, name=more["queue"]) if "queue" in more else None
    study = capacities.ask(cluster=cluster, author="", **{**more, "queue": queue})
    while running.work(study.pk):
        pass
    study.refresh_from_db()
    person, _ = User.objects.get_or_create(username="golden", is_superuser=True)
    told = capacity_report(cluster, study, person).as_dict()
    return {key: told[key] for key in ("classes", "curve", "came")} | {
        "study": {k: v for k, v in told["study"].items() if k not in ("id", "cpu_s")}
    }


def experiment(cluster: Cluster, more: Json) -> Json:
    given = {
        "begin": NOW - timedelta(days=5), "end": NOW - timedelta(days=3), "warm_up": timedelta(days=1),
        **more,
    }  # fmt: skip
    asked = experiments.Question(name="golden", **given)
    made = experiments.ask(cluster=cluster, author="admin", question=asked)
    while running.work(made.pk):
        pass
    made.refresh_from_db()
    found = results(made)
    told = document(made, found)
    for one in told["variants"]:
        one.pop("cpu_s")
    lacks = [lacking(made, found, row) for row in found.rows[1:]]
    of = {
        "jobs": made.basis["jobs"], "source": made.basis["source"], "basis": made.basis["world"],
        "variants": [
            {"kind": "changes" if one["changes"] else "in_force", **one}
            for one in made.variants.values("letter", "name", "changes", "state", "fault")
        ],
    }  # fmt: skip
    return {"results": told, "lacks": lacks, **of}


def adapting(cluster: Cluster, live: Callable[[Cluster], Any]) -> Json:
    live(cluster)
    cluster.refresh_from_db()
    said = Announcement.objects.filter(kind__startswith="adapting.").order_by("pk")
    return {
        "document": adapting_document(cluster),
        "audit": list(said.values("kind", "subject", "before", "after", "reason")),
    }


KINDS: Mapping[str, tuple[Callable[[Cluster, Any], Json], Mapping[str, Any]]] = {
    "what_if": (what_if, WHAT_IFS),
    "capacity": (capacity, CAPACITIES),
    "experiment": (experiment, EXPERIMENTS),
    "adapting": (adapting, ADAPTINGS),
}
