"""Starts by hour of day."""

from __future__ import annotations

from portal.display.format import counted, duration
from portal.reports.figures import Chart, theme
from portal.reports.starts import StartsReport, span

HEIGHT = 252


def by_hour(report: StartsReport) -> Chart:
    """One bar an hour, its median wait beside the pointer."""
    hours = list(range(len(report.hours)))
    layout = theme.layout(left=48, right=16)
    layout |= {"bargap": 0.24, "hovermode": "closest"}
    layout["xaxis"] = theme.axis(
        range=[-0.6, len(hours) - 0.4], showgrid=False, tickmode="array",
        tickvals=hours[::3], ticktext=[f"{hour:02d}:00" for hour in hours[::3]],
    )  # fmt: skip
    top = max(4, *(spread.count for spread in report.hours)) * 1.04
    layout["yaxis"] = theme.axis(range=[0, top], nticks=6, tickformat=",d", rangemode="tozero")
    bars = {
        "type": "bar",
        "name": "started",
        "x": hours,
        "y": [spread.count for spread in report.hours],
        "marker": {"color": theme.OWN},
        "customdata": [
            f"{span(hour)}, {counted(spread.count, 'start')}, median wait {duration(spread.p50)}"
            for hour, spread in enumerate(report.hours)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    return Chart("by-hour", "Starts by hour of day", HEIGHT, [bars], layout)
