"""The model of run times as operators see it: what serves, how it held on later runs, beside simple ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.display.format import number
from portal.display.line_labels import LineLabel
from portal.web.ahead import Ahead
from scheduling.models import Cluster, Prediction, Predictor, PredictorKind, PredictorState
from scheduling.services.run_times import hits
from scheduling.services.starts.accuracy import Share

LEAST = timedelta(hours=1)
HELD_LOW, HELD_HIGH = 60.0, 100.0
"""Percent at the ends of the panel of what P10 to P90 held; what lies outside is drawn at the edge."""
HELD_TOLD = 80.0
LABEL_PX = 34
PANEL_PX = 560


@dataclass(frozen=True, slots=True)
class VersionBar:
    """While ``version`` served; ``label`` where it has room."""

    version: Predictor
    x: float
    width: float
    label: str

    @property
    def is_boosted(self) -> bool:
        return self.version.kind == PredictorKind.BOOSTED


@dataclass(frozen=True, slots=True)
class VersionDot:
    """How one version held when it was learned: percent of the panel from its top, with whiskers."""

    version: Predictor
    x: float
    held_y: float
    low_y: float
    high_y: float
    hollow: bool
    error_y: float


@dataclass(frozen=True, slots=True)
class ErrorFigure:
    """``line`` joins the errors; ``most_error`` is the top of their panel, in powers of two."""

    bars: Sequence[VersionBar]
    dots: Sequence[VersionDot]
    told_y: float
    line: str
    most_error: float
    ticks: Sequence[LineLabel]


def figure(versions: Sequence[Predictor], now: datetime, zone_name: str) -> ErrorFigure | None:
    """``versions`` in any order; None where fewer than two were judged."""
    judged = sorted((v for v in versions if v.calibration.get("runs")), key=lambda v: v.version)
    if len(judged) < 2:
        return None
    axis = Ahead(min(judged[0].window_to, now - LEAST), now)
    most = 1.1 * max(v.calibration["median_abs_log2_error"] for v in judged) or 1.0
    dots = [_dot(one, axis, most) for one in judged]
    served = sorted((v for v in versions if v.served_from), key=lambda v: v.version)
    return ErrorFigure(
        bars=[_bar(one, axis, now) for one in served],
        dots=dots,
        told_y=_held_y(HELD_TOLD),
        line=" ".join(f"{dot.x:.2f},{dot.error_y:.2f}" for dot in dots),
        most_error=most,
        ticks=axis.ticks(zone_name, wide_px=PANEL_PX, narrow_px=300),
    )


def _bar(one: Predictor, axis: Ahead, now: datetime) -> VersionBar:
    left, right = axis.x(one.served_from or now), axis.x(one.served_until or now)
    width = round(right - left, 3)
    label = f"v{one.version}" if width / 100 * PANEL_PX >= LABEL_PX else ""
    return VersionBar(one, left, width, label)


def _dot(one: Predictor, axis: Ahead, most: float) -> VersionDot:
    calibration = one.calibration
    runs = int(calibration["runs"])
    low, high = Share(round(calibration["p10_p90_pct"] / 100 * runs), runs).bounds
    return VersionDot(
        version=one,
        x=axis.x(one.window_to),
        held_y=_held_y(calibration["p10_p90_pct"]),
        low_y=_held_y(low),
        high_y=_held_y(high),
        hollow=not low <= HELD_TOLD <= high,
        error_y=round(100 - 100 * calibration["median_abs_log2_error"] / most, 2),
    )


def _held_y(pct: float) -> float:
    part = (min(HELD_HIGH, max(HELD_LOW, pct)) - HELD_LOW) / (HELD_HIGH - HELD_LOW)
    return round(100 - 100 * part, 2)


LATEST = 200
"""Told live and due by now: the last of which it is said how they held."""
VERSIONS = 6
SIMPLE = {
    "history": "History alone",
    "boosted": "Boosted alone",
    "user_last_two": "Last two of the user",
    "global_median": "Median of all",
    "requested_time": "Requested limit",
}
KNOWN = {
    "limit": ("Run-time limit", "as its author asks for"),
    "size": ("Size", "GPUs and memory"),
    "time": ("Hour and day", "of the submission"),
    "type": ("Type", "training, inference, interactive"),
    "user_open": ("User’s open work", "how much, and since when the last"),
    "recipe_open": ("Open work like it", "how much, and how old"),
    "history": ("What history says", "P10, P50, P90 of runs like it"),
    "last_recipe": ("Last runs of its recipe", "same user, name, size and limit, in its queue"),
    "last_shape": ("Last runs of its shape", "same user, name, size and limit, in any queue"),
    "last_place": ("Last runs of user and size", "in its queue"),
    "last_user": ("Last runs of the user", "whatever they were"),
    "last_size": ("Last runs of the size", "in its queue"),
    "last_queue": ("Last runs of the queue", "whatever they were"),
}
"""By the names of ``prediction.weighing``."""
GROUPS = {
    "recipe": "User, name, size, limit and queue",
    "shape": "User, name, size and limit",
    "name": "User and name",
    "place": "User, queue and size",
    "user": "User",
    "image": "Name and image",
    "size": "Queue and size",
    "queue": "Queue",
    "all": "All of the cluster",
    "": "Nothing yet",
}
"""By the groups of ``prediction.history``."""
LEAST_LOSS_PCT = 0.05
"""What is worth less is noise of the shuffling, and stands at zero."""


@dataclass(frozen=True, slots=True)
class Weight:
    """``loss_pct``: how much worse the model were without it; ``width`` of its bar, percent."""

    name: str
    means: str
    loss_pct: float
    before: float | None
    """Of the version before."""
    width: float

    @property
    def loss(self) -> str:
        return "0" if self.is_nothing else f"+{number(self.loss_pct, 1)}"

    @property
    def is_nothing(self) -> bool:
        return self.loss_pct < LEAST_LOSS_PCT


@dataclass(frozen=True, slots=True)
class Rests:
    """Share of predictions that rested on runs of the same ``group``, and by how much they were off."""

    group: str
    runs: int
    pct: float
    error: float


@dataclass(frozen=True, slots=True)
class ClassRow:
    name: str
    runs: int
    held_pct: float
    error: float


@dataclass(frozen=True, slots=True)
class RunTimesPage:
    """Errors are medians of |log2 of P50 over the run time|: 1 is a factor of two."""

    serving: Predictor
    classes: Sequence[ClassRow]
    simple: Sequence[tuple[str, float]]
    versions: Sequence[Predictor]
    """The latest."""
    all_versions: int
    figure: ErrorFigure | None
    weights: Sequence[Weight]
    weighed_runs: int
    weighed_before: Predictor | None
    rests: Sequence[Rests]
    live: int
    live_held_pct: float


def page(cluster: Cluster) -> RunTimesPage | None:
    """None before anything was learned."""
    versions = list(Predictor.objects.filter(cluster=cluster).defer("state").order_by("-version"))
    serves = next((one for one in versions if one.status == PredictorState.SERVING), None)
    if serves is None:
        return None
    weighed = [one for one in versions if one.weighs.get("known")]
    live, hits = live_held(cluster)
    return RunTimesPage(
        serving=serves,
        classes=_classes(serves),
        simple=_simple(serves),
        versions=versions[:VERSIONS],
        all_versions=len(versions),
        figure=figure(versions, cluster.now(), cluster.display_time_zone),
        weights=_weights(weighed),
        weighed_runs=weighed[0].weighs["runs"] if weighed else 0,
        weighed_before=weighed[1] if len(weighed) > 1 else None,
        rests=_rests(serves),
        live=live,
        live_held_pct=100 * hits / live if live else 0.0,
    )


def _weights(weighed: Sequence[Predictor]) -> list[Weight]:
    """Of the newest of those, the largest first, beside the one before."""
    if not weighed:
        return []
    now, *earlier = ({k["name"]: k["loss_pct"] for k in one.weighs["known"]} for one in weighed[:2])
    before = earlier[0] if earlier else {}
    most = max(1.0, *now.values())
    return [_weight(name, loss, before.get(name), most) for name, loss in now.items()]


def _weight(name: str, loss_pct: float, before: float | None, most: float) -> Weight:
    words, means = KNOWN.get(name, (name, ""))
    return Weight(words, means, loss_pct, before, max(0.0, 100 * loss_pct / most))


def _rests(one: Predictor) -> list[Rests]:
    groups = one.weighs.get("groups", ())
    total = sum(of["runs"] for of in groups)
    return [
        Rests(GROUPS.get(of["name"], of["name"]), of["runs"], 100 * of["runs"] / total, of["error"])
        for of in groups
    ]


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


def live_held(cluster: Cluster) -> tuple[int, int]:
    """Of the last that were told here and have come due: how many, and how many held."""
    predictions = Prediction.objects.filter(workload__cluster=cluster)
    latest = hits(predictions, cluster.now(), LATEST)
    return len(latest), sum(latest)
