"""Bars, plots and addresses of the report templates."""

from __future__ import annotations

import math

from django import template

from portal.display.format import gpus
from portal.reports.figures import Figure
from portal.reports.filters import ReportFilters
from portal.web.reports.pages import Meter

register = template.Library()


@register.filter
def gpu_mean(value: float) -> str:
    """A mean of whole GPUs; a step without samples is a dash."""
    return gpus(None if math.isnan(value) else 1000 * value)


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
