"""A rule over what was measured: its figure, its bound, the bound before, and each time in which it fires."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from portal.alerts import words
from portal.alerts.models import Rule
from portal.alerts.page import Trial
from portal.reports.figures import Chart as Drawn
from portal.reports.figures import theme

HEIGHT = 252
ERR, PINK = "var(--err-text)", "var(--err-bg)"
HOUR, DAY = 3600.0, 86_400.0


def drawn(tried: Trial, zone: ZoneInfo) -> Drawn:
    rule, before = tried.rule, tried.before
    scale, unit = _scale(tried)
    times = [datetime.fromtimestamp(at, UTC) for at in tried.times.tolist()]
    values = tried.series.values / scale
    bounds = [rule.over, before.over if before and _comparable(rule, before) else 0.0]
    top = (
        max(float(np.nanmax(values, initial=0.0)), *(each / scale for each in bounds), 1e-9) * 1.12
    )
    layout = theme.layout(left=48, right=104, top=16, bottom=32)
    layout["xaxis"] = theme.time_axis(times[0], times[-1], zone)
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero", ticksuffix=unit)
    layout["shapes"] = [_band(one, zone) for one in tried.spells]
    data = [_line(times, values, zone, unit), _bound(times, rule.over / scale, zone, ERR, "")]
    is_new = before is not None and before.over != rule.over
    said = f"{words.value_of(rule, rule.over)}{', new' if is_new else ''}"
    labels = [theme.label(said, rule.over / scale, bold=True, font={"color": ERR})]
    if before is not None and _comparable(rule, before) and before.over != rule.over:
        data.append(_bound(times, before.over / scale, zone, theme.MUTED, "4px,3px"))
        labels.append(
            theme.label(f"{words.value_of(rule, before.over)}, as it was", before.over / scale)
        )
    layout["annotations"] = labels + [_number(one, top, zone) for one in tried.spells]
    label = f"{rule.get_figure_display()} over the last 14 days against the bound"
    return Drawn("alert", label, HEIGHT, data, layout)


def _comparable(rule: Rule, before: Rule) -> bool:
    return rule.figure == before.figure


def _scale(tried: Trial) -> tuple[float, str]:
    """What values are divided by, and their unit."""
    if tried.rule.figure in words.UNITS:
        return 1.0, ""
    highest = max(float(np.nanmax(tried.series.values, initial=0.0)), tried.rule.over)
    if highest >= 3 * DAY:
        return DAY, " d"
    if highest >= HOUR:
        return HOUR, " h"
    return (60.0, " min") if highest >= 120 else (1.0, " s")


def _line(times: list[datetime], values: Any, zone: ZoneInfo, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": "measured",
        "x": [theme.local(at, zone) for at in times], "y": theme.numbers(values),
        "line": {"color": theme.OWN, "width": 1.5}, "hovertemplate": f"%{{y:.1f}}{unit}",
    }  # fmt: skip


def _bound(
    times: list[datetime], at: float, zone: ZoneInfo, colour: str, dash: str
) -> dict[str, Any]:
    line: dict[str, Any] = {"color": colour, "width": 1.5}
    return {
        "type": "scatter", "mode": "lines", "hoverinfo": "skip", "y": [at, at],
        "x": [theme.local(times[0], zone), theme.local(times[-1], zone)],
        "line": line | ({"dash": dash} if dash else {}),
    }  # fmt: skip


def _band(one: Any, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "type": "rect", "xref": "x", "yref": "paper", "layer": "below", "y0": 0, "y1": 1,
        "x0": theme.local(one.since, zone), "x1": theme.local(one.until, zone),
        "fillcolor": PINK, "line": {"width": 0},
    }  # fmt: skip


def _number(one: Any, top: float, zone: ZoneInfo) -> dict[str, Any]:
    at = theme.local(one.since + (one.until - one.since) / 2, zone)
    return theme.label(
        str(one.number), top * 0.95, x=at, xref="x", xanchor="center", xshift=0, bold=True
    )


def is_drawable(tried: Trial) -> bool:
    return tried.is_kept and bool(np.isfinite(tried.series.values).any())
