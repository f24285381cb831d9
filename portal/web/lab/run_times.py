"""The model of run times as operators see it: what serves, how it held on later runs, beside simple ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, Q

from scheduling.models import Cluster, Prediction, Predictor
from scheduling.services.forecasts import serving

LATEST = 200
"""Told live and over: the last of which it is said how they held."""
VERSIONS = 6
SIMPLE = {
    "history": "History alone",
    "boosted": "Boosted alone",
    "user_last_two": "Last two of the user",
    "global_median": "Median of all",
    "requested_time": "Requested limit",
}


@dataclass(frozen=True, slots=True)
class ClassRow:
    name: str
    runs: int
    held_pct: float
    error: float


@dataclass(frozen=True, slots=True)
class Page:
    """Errors are medians of |log2 of P50 over the run time|: 1 is a factor of two."""

    serving: Predictor
    classes: Sequence[ClassRow]
    simple: Sequence[tuple[str, float]]
    versions: Sequence[Predictor]
    live: int
    live_held_pct: float


def page(cluster: Cluster) -> Page | None:
    """None before anything was learned."""
    serves = serving(cluster)
    if serves is None:
        return None
    versions = Predictor.objects.filter(cluster=cluster).defer("state")
    live, held = _live(cluster)
    return Page(
        serving=serves,
        classes=_classes(serves),
        simple=_simple(serves),
        versions=list(versions[:VERSIONS]),
        live=live,
        live_held_pct=100 * held / live if live else 0.0,
    )


def _classes(one: Predictor) -> list[ClassRow]:
    return [
        ClassRow(name, int(of["runs"]), of["p10_p90_pct"], of["median_abs_log2_error"])
        for name, of in sorted(one.calibration.get("by_class", {}).items())
        if of
    ]


def _simple(one: Predictor) -> list[tuple[str, float]]:
    """What else could have been said of the same runs, the nearest first."""
    models = one.calibration.get("simple", {})
    errors = {name: of["median_abs_log2_error"] for name, of in models.items() if of}
    errors |= one.calibration.get("baselines", {})
    found = [(words, errors[name]) for name, words in SIMPLE.items() if name in errors]
    return sorted(found, key=lambda pair: pair[1])


def _live(cluster: Cluster) -> tuple[int, int]:
    """Of the last that were told here and ran to their end: how many, and how many within P10 to P90."""
    told = Prediction.objects.filter(workload__cluster=cluster, ran_s__gt=0, cut_short=False)
    latest = told.order_by("-at").values("pk")[:LATEST]
    within = Q(ran_s__gte=F("told_p10_s"), ran_s__lte=F("told_p90_s"))
    kept = Prediction.objects.filter(pk__in=list(latest.values_list("pk", flat=True)))
    return kept.count(), kept.filter(within).count()
