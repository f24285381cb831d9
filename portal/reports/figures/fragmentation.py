"""Fragmented GPUs by period, stacked by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from portal.display.format import class_number
from portal.display.periods import Floats
from portal.reports.figures import Chart, theme
from portal.reports.fragmentation import FragmentationReport, FragmentedMeans

HEIGHT = 252
TOP, BOTTOM = 16, 32


def by_period(report: FragmentationReport) -> Chart:
    """Pale areas, labelled right of the last period, with the highest period named."""
    lines = [line for line in report.lines if np.nansum(line.means) > 0]
    total = _total(report)
    top = max(1.0, float(np.nanmax(total, initial=0.0))) * 1.2
    layout = theme.layout(left=36, right=148, top=TOP, bottom=BOTTOM)
    layout["xaxis"] = theme.period_axis(report.periods, report.filters.tz)
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero")
    layout["annotations"] = _labels(lines, total, top) + _highest(report, total)
    data = [_area(report, line) for line in lines]
    label = f"Mean fragmented GPUs by {report.periods.unit} and GPU class"
    return Chart("fragmented", label, HEIGHT, data, layout)


def _total(report: FragmentationReport) -> Floats:
    """NaN where nobody looked at any class."""
    means = np.array([line.means for line in report.lines])
    return np.where(np.isnan(means).all(axis=0), np.nan, np.nansum(means, axis=0))


def _area(report: FragmentationReport, line: FragmentedMeans) -> dict[str, Any]:
    area = {
        "type": "scatter",
        "mode": "lines",
        "name": line.name,
        "x": theme.period_middles(report.periods, report.filters.tz),
        "y": theme.numbers(line.means),
        "stackgroup": "fragmented",
        "line": {"color": theme.SURFACE, "width": 1},
        "fillcolor": theme.pale(theme.class_colour(line.position)),
        "hovertemplate": "%{y:.1f}",
    }
    if class_number(line.position) > 5:
        area["fillpattern"] = {"shape": "/", "fgcolor": theme.MUTED, "bgcolor": theme.SURFACE}
    return area


def _labels(lines: list[FragmentedMeans], total: Floats, top: float) -> list[dict[str, Any]]:
    known = np.flatnonzero(~np.isnan(total))
    if not len(known):
        return []
    last, below, wanted = int(known[-1]), 0.0, []
    for line in lines:
        value = float(np.nan_to_num(line.means[last]))
        if value:
            wanted.append((f"{line.name} {value:.1f}", below + value / 2, False))
        below += value
    wanted.append((f"{below:.1f} in all", below, True))
    gap = theme.LABEL_GAP_PX * top / (HEIGHT - TOP - BOTTOM)
    heights = theme.apart([y for _, y, _ in wanted], gap)
    return [
        theme.label(text, y, bold=bold) for (text, _, bold), y in zip(wanted, heights, strict=True)
    ]


def _highest(report: FragmentationReport, total: Floats) -> list[dict[str, Any]]:
    """The period with most, named above it; the last has its label beside it."""
    if np.isnan(total).all() or float(np.nanmax(total)) <= 0 or report.periods.unit == "hour":
        return []
    i = int(np.nanargmax(total))
    if i == len(total) - 1:
        return []
    at = report.periods.starts[i].astimezone(report.filters.tz)
    middle = theme.period_middles(report.periods, report.filters.tz)[i]
    return [
        theme.label(
            f"{total[i]:.1f} on {theme.day_text(at)}", float(total[i]), x=middle, bold=True,
            xref="x", xanchor="center", yanchor="bottom", xshift=0,
        )
    ]  # fmt: skip
