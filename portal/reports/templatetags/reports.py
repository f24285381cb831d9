"""Filters of the report templates; the words are in ``portal.reports.words``."""

from __future__ import annotations

from django import template

from portal.reports import words
from portal.reports.figures import Figure
from portal.reports.filters import ReportFilters
from portal.reports.pages import Meter
from portal.web.format import NONE, number

register = template.Library()
register.filter("percent", words.percent)
register.filter("hours", words.hours)
register.filter("wait", words.wait)


@register.filter
def gpu_mean(value: float) -> str:
    """A mean number of GPUs with one decimal; a step without samples is a dash."""
    return NONE if value != value else number(value, 1)  # noqa: PLR0124 - NaN differs from itself


@register.filter
def ratio(value: float | None) -> str:
    """'1.18'."""
    return NONE if value is None else f"{value:.2f}"


@register.inclusion_tag("reports/meter.html")
def meter(bar: Meter) -> dict[str, Meter]:
    return {"bar": bar}


@register.inclusion_tag("reports/plot.html")
def plot(figure: Figure) -> dict[str, object]:
    return {"figure": figure, "data": figure.as_dict()}


@register.simple_tag
def narrowed(filters: ReportFilters, key: str, value: str) -> str:
    """The address of the same report about one queue, class, user or type alone."""
    return f"?{filters.query(**{key: value})}"
