"""Figures are dicts that Plotly takes, small enough, and without markup that the security policy refuses."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from portal.reports.figures import Chart
from portal.reports.figures.labels import CHAR_PX
from portal.reports.figures.utilization import allocated_by_class
from portal.reports.filters import PRESETS, ReportFilters
from portal.reports.preemptions import preemptions
from portal.reports.starts import starts
from portal.reports.utilization import utilization
from portal.reports.waits import waits
from portal.web.reports import pages
from portal.web.reports.preemptions import preemptions_page
from portal.web.reports.utilization import utilization_page
from scheduling.models import Cluster
from tests.factories import NOW, make_user
from tests.portal.reports import history
from tests.portal.reports.conftest import Small
from tests.portal.reports.test_utilization import scattered

REPORTS = (
    (utilization, utilization_page),
    (waits, pages.waits_page),
    (starts, pages.starts_page),
    (preemptions, preemptions_page),
)


@pytest.fixture(scope="module")
def figures(django_db_setup: None, django_db_blocker: object) -> list[Chart]:
    """Every figure of every report over every preset and a year, of two days of history."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        try:
            return _figures(history.small_past(NOW, hours=48))
        finally:
            transaction.set_rollback(True)


def _figures(cluster: Cluster) -> list[Chart]:
    user = make_user(is_superuser=True)
    asked = [ReportFilters.last(preset, NOW, zone="Europe/Berlin") for preset in PRESETS]
    asked.append(ReportFilters(NOW.replace(year=2025), NOW))
    found = []
    for filters in asked:
        for compute, page in REPORTS:
            report = compute(cluster, filters, user)  # type: ignore[operator]
            if report.is_empty:
                continue
            context = page(report)  # type: ignore[operator]
            found += [value for value in context.values() if isinstance(value, Chart)]
    return found


def test_every_figure_is_valid(figures: list[Chart]) -> None:
    assert {figure.name for figure in figures} == {
        "allocated", "by-day", "within", "week", "by-hour", "by-rule",
    }  # fmt: skip
    for figure in figures:
        go.Figure(figure.as_dict())


def test_every_figure_is_json_without_nan(figures: list[Chart]) -> None:
    for figure in figures:
        json.dumps(figure.as_dict(), allow_nan=False)


def test_no_series_has_more_points_than_allowed(figures: list[Chart]) -> None:
    for figure in figures:
        for trace in figure.data:
            assert len(trace["x"]) <= 500


def test_no_label_holds_markup(figures: list[Chart]) -> None:
    for figure in figures:
        text = json.dumps(figure.as_dict()).replace("<extra></extra>", "")
        assert "<" not in text, figure.name


def test_colours_are_names_of_the_theme(figures: list[Chart]) -> None:
    for figure in figures:
        for trace in figure.data:
            colour = trace.get("line", trace.get("marker", {})).get("color")
            assert colour is None or colour.startswith("var(--")


NARROW_PX = 390 - 2 * 16 - 48 - 136
"""Between the margins of the chart on a narrow page."""


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6))
def test_every_class_that_held_something_is_named_clear_of_the_right_edge(
    small: Small, seed: int
) -> None:
    scattered(small, seed)
    report = utilization(small.cluster, small.last(48), small.operator)
    labels = allocated_by_class(report).layout["annotations"]
    held = {line.name for line in report.series if np.nansum(line.allocated) > 0}
    assert held <= {label["text"] for label in labels}
    for label in labels:
        if label["x"] < 1:
            right = label["x"] * NARROW_PX + 8 + CHAR_PX * len(label["text"])
            assert right <= NARROW_PX + 8, label["text"]


@pytest.mark.django_db
def test_class_that_holds_nothing_any_more_is_named_as_well(small: Small) -> None:
    for hours_ago, allocated in ((3, 1), (2, 0), (1, 0)):
        small.sample(small.root, small.h100, installed=16, ready=16, hours_ago=hours_ago)
        small.sample(small.vision, small.h100, nominal=8, allocated=allocated, hours_ago=hours_ago)
    report = utilization(small.cluster, small.last(3), small.operator)
    texts = [label["text"] for label in allocated_by_class(report).layout["annotations"]]
    assert small.h100.name in texts
