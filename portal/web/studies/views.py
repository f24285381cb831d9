"""Studies of every kind: listed, shown, cancelled, kept, promoted.

The figures of an experiment as a table that a spreadsheet reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from portal.display.csv import Cell, Table
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, act_view, attached_csv, page_view
from portal.web.operations.mode import operated
from portal.web.overview.views import chosen_class
from portal.web.studies import basis, capacity_views, comparison, drafts, forms, what_if
from portal.web.studies import doors as ways
from portal.web.studies.new_views import readable
from scheduling.models import Cluster, Study, StudyKind
from scheduling.models.studies import OPEN
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors
from scheduling.services.studies.experiments.promoting import promote as note_promotion
from scheduling.services.studies.experiments.results import document, results
from scheduling.services.studies.kinds import EXPERIMENTS, WHAT_IFS

COLUMNS = (
    "queue",
    "variant",
    "replays",
    "figure",
    "mean",
    "difference",
    "half_of_interval",
    "verdict",
)
OF_QUEUE = (
    "avg_wait_s",
    "p90_wait_s",
    "unfair_pct",
    "evictions",
    "lost_gpu_hours",
    "held_gpu_hours",
    "cost",
)


def table(study: Study) -> Table:
    """One row for each variant and figure, first over all (no queue), then by queue."""
    body = document(study, results(study))
    return Table("experiment", study.name, COLUMNS, [*_over_all(body), *_by_queue(body)])


def _over_all(body: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for one in body["variants"]:
        for key, cell in one["figures"].items():
            yield (
                "", one["letter"], one["done"], key, cell["mean"], cell["difference"], cell["half"],
                cell["verdict"],
            )  # fmt: skip


def _by_queue(body: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    done = {one["letter"]: one["done"] for one in body["variants"]}
    for row in body["queues"]:
        for cell in row["variants"]:
            for key in OF_QUEUE:
                verdict = cell["verdict"] if key == "p90_wait_s" else ""
                letter = cell["letter"]
                yield row["queue"], letter, done[letter], key, cell[key], None, None, verdict


WORDS: Mapping[str, str] = {
    StudyKind.NOW: "What-if",
    StudyKind.REPLAY: "What-if",
    StudyKind.CAPACITY: "Capacity",
    StudyKind.EXPERIMENT: "Experiment",
    StudyKind.ADAPTING: "Adaptation",
}
"""Those about an edit of quotas stand with the edit."""
LISTS: Mapping[str, Q] = {
    "people": Q(kind__in=list(WORDS)) & ~Q(author=""),
    "experiments": Q(kind=StudyKind.EXPERIMENT),
    "what-ifs": Q(kind__in=WHAT_IFS),
    "capacity": Q(kind=StudyKind.CAPACITY),
    "adaptation": Q(kind=StudyKind.ADAPTING),
}
"""What is listed; the daily ones of Weir itself would bury those of people."""


def _of(cluster: Cluster) -> QuerySet[Study]:
    """Without what only a worker reads: that is megabytes."""
    rows = Study.objects.filter(cluster=cluster, kind__in=list(WORDS))
    return rows.defer("world", "work").select_related("cluster", "queue")


def _one(request: PersonRequest, cluster: str, pk: int) -> Study:
    return get_object_or_404(_of(operated(request, cluster)), pk=pk)


def _compared(request: PersonRequest, cluster: str, pk: int) -> Study:
    """One with variants that are people's to choose among."""
    return get_object_or_404(_of(operated(request, cluster)), pk=pk, kind__in=EXPERIMENTS)


@page_view
def studies(request: PersonRequest, cluster: str) -> HttpResponse:
    found = operated(request, cluster)
    chosen = request.GET.get("of", "people")
    chosen = chosen if chosen in LISTS else "people"
    counts = _of(found).aggregate(
        **{key.replace("-", "_"): Count("pk", filter=each) for key, each in LISTS.items()}
    )
    rows = _of(found).filter(LISTS[chosen]).prefetch_related("variants").annotate(
        done=Count("variants__results", filter=Q(variants__results__done_at__isnull=False)),
        of=Count("variants__results"),
    )  # fmt: skip
    # Rows that are counted are grouped, and the model's own order goes with that.
    rows = rows.order_by("-asked_at", "-id")
    page = page_of(request, rows, count=counts[chosen.replace("-", "_")])
    context = {
        "cluster": found,
        "page": page,
        "rows": [(one, WORDS[one.kind], _state(one), _variants(one)) for one in page],
        "of": chosen,
        "counts": [(key, key.capitalize(), counts[key.replace("-", "_")]) for key in LISTS],
        "tab": "studies",
    }
    return render(request, "web/lab/studies.html", context)


def _variants(study: Study) -> list[Any]:
    return list(study.variants.all()) if study.kind in EXPERIMENTS else []


def _state(study: Study) -> str:
    """'done, partly failed' where variants ended in several ways."""
    states = {one.state for one in _variants(study)}
    if study.state in OPEN:
        return f"{study.get_state_display().lower()}, {study.progress} %"
    partly = next((state for state in ("failed", "cancelled") if state in states), "")
    return (
        f"done, partly {partly}"
        if partly and len(states) > 1
        else study.get_state_display().lower()
    )


@page_view
def study(request: PersonRequest, cluster: str, pk: int) -> HttpResponseBase:
    one = _one(request, cluster, pk)
    return PAGES[one.kind](request, one)


def _what_if(request: PersonRequest, study: Study) -> HttpResponse:
    found = study.cluster
    classes = list(found.gpu_classes.all())
    meant = what_if.chosen_class(study, classes)
    chosen = chosen_class(request, classes) if request.GET.get("class") else meant
    page = what_if.page(study, chosen.name if chosen else "")
    studies = _of(found).filter(is_kept=True, kind__in=WHAT_IFS)
    context = {
        "cluster": found,
        "study": study,
        "page": page,
        "ticks": page.axis.ticks(found.display_time_zone, wide_px=300, narrow_px=280)
        if page
        else (),
        "asked": what_if.AskedChange.all_of(study),
        "classes": classes,
        "chosen": chosen,
        "wait_ticks": what_if.wait_ticks(),
        "again": forms.as_query(study.changes),
        "draft": drafts.quota_draft(request.user, study) if page else None,
        "others": list(studies.exclude(pk=study.pk)[:4]),
        "tab": "what_if",
    }
    return render(request, "web/lab/what_if.html", context)


def _experiment(
    request: PersonRequest, study: Study, fault: ServiceError | None = None
) -> HttpResponse:
    promoted = [
        (variant, ways.doors(request.user, variant), ways.left_out(variant))
        for variant in study.variants.select_related("study__cluster").exclude(promoted_at=None)
    ]
    context = {
        "cluster": study.cluster,
        "study": study,
        "page": comparison.page(study),
        "promoted": promoted,
        "work": basis.work(study),
        "world": basis.world(study),
        "fault": fault,
        "typed": request.POST,
        "floor": comparison.FLOOR,
        "tab": "studies",
    }
    return render(request, "web/lab/experiment.html", context, status=400 if fault else 200)


PAGES: Mapping[str, Callable[[PersonRequest, Study], HttpResponseBase]] = {
    StudyKind.NOW: _what_if,
    StudyKind.REPLAY: _what_if,
    StudyKind.CAPACITY: capacity_views.of_study,
    StudyKind.EXPERIMENT: _experiment,
    StudyKind.ADAPTING: _experiment,
}


@page_view
def as_csv(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    one = _compared(request, cluster, pk)
    return attached_csv(table(one), f"experiment-{one.pk}.csv")


@act_view
def cancel(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """One variant, or without a letter all."""
    one = _one(request, cluster, pk)
    letter = request.POST.get("letter", "")
    if not doors.cancel(one, letter=letter, author=request.user.get_username()):
        messages.info(request, "It had ended already.")
    return redirect("web:study", cluster=cluster, pk=pk)


@act_view
def keep(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    one = _one(request, cluster, pk)
    doors.keep(one, is_kept=not one.is_kept)
    return redirect("web:study", cluster=cluster, pk=pk)


@act_view
def promote(request: PersonRequest, cluster: str, pk: int) -> HttpResponse:
    """Note the choice; what changes goes through its own door, with its preview."""
    one = _compared(request, cluster, pk)
    variant = one.variants.filter(letter=request.POST.get("letter", "")[:1]).first()
    reason = request.POST.get("reason", "")
    try:
        readable("reason", reason)
        if variant is None:
            raise ServiceError(
                "no_variant", "There is no such variant.", "Choose one.", field="variant"
            )
        note_promotion(variant=variant, author=request.user.get_username(), reason=reason)
    except ServiceError as error:
        return _experiment(request, one, error)
    found = ways.doors(request.user, variant)
    if len(found) == 1 and found[0].address:
        return redirect(found[0].address)
    messages.success(
        request, f"{variant} is promoted. Go through each door below: nothing is changed yet."
    )
    return redirect("web:study", cluster=cluster, pk=pk)
