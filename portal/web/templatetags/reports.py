"""Bars, plots and addresses of the report templates."""

from __future__ import annotations

import math
from datetime import datetime

from django import template
from django.template import Context

from portal.display.format import MINUS, NONE, gpus, number, zone
from portal.reports.figures import Chart
from portal.reports.filters import ReportFilters
from portal.web.reports.pages import Meter

register = template.Library()


@register.filter
def gpu_mean(value: float) -> str:
    """A mean of whole GPUs; a step without samples is a dash."""
    return gpus(None if math.isnan(value) else 1000 * value)


@register.filter
def change_percent(part: float | None) -> str:
    """A change as a part of what it is against, with its sign: -0.57 is '−57 %'."""
    if part is None:
        return NONE
    return f"{MINUS if part < 0 else '+'}{number(abs(100 * part))} %"


@register.simple_tag(takes_context=True)
def day(context: Context, at: datetime) -> str:
    """The local day of an instant, with its year where it is another one: '8 Feb 2027'."""
    shell = context["shell"]
    local = at.astimezone(zone(shell.zone))
    now = shell.now.astimezone(zone(shell.zone))
    year = "" if local.year == now.year else f" {local.year}"
    return f"{local.day} {local:%b}{year}"


@register.inclusion_tag("reports/meter.html")
def meter(bar: Meter) -> dict[str, Meter]:
    return {"bar": bar}


@register.inclusion_tag("reports/plot.html")
def plot(figure: Chart) -> dict[str, object]:
    return {"figure": figure, "data": figure.as_dict()}


@register.simple_tag
def narrowed(filters: ReportFilters, key: str, value: str) -> str:
    """The address of the same report about one queue, class, user or type alone."""
    return f"?{filters.query(**{key: value})}"
