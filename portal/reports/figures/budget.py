"""What is left of a budget: so far, by even spending, and ahead with its band."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from portal.display.format import whole_money
from portal.reports.budgets import Spending
from portal.reports.figures import Chart, theme

HEIGHT = 264
ERR = "var(--err-text)"
DOTTED, DASHED = "2px,3px", "4px,3px"


def burn_down(one: Spending, currency: str, tz: ZoneInfo) -> Chart:
    """Fact solid, forecast dotted in its band, even spending dashed; the day it is spent on stands below."""
    budget = one.budget
    layout = theme.layout(left=64, right=112, top=24, bottom=32)
    first, last = _at(budget.begin), _at(budget.end)
    layout["xaxis"] = theme.time_axis(_aware(budget.begin, tz), _aware(budget.end, tz), tz)
    lows = [each.low for each in one.ahead] + [one.left, 0.0]
    layout["yaxis"] = theme.axis(
        range=[min(lows) * 1.04, one.amount * 1.04], nticks=5, tickformat="~s", zeroline=True,
        zerolinecolor=theme.STRONG,
    )  # fmt: skip
    even = _line("even spending", [first, last], [one.amount, 0.0], theme.MUTED, 1.0, DASHED)
    fact = _line(
        "left", [_at(day) for day, _ in one.days], [v for _, v in one.days], theme.OWN, 2.0
    )
    data = [even, *_band(one), fact, *_forecast(one)]
    layout["annotations"] = _labels(one, currency)
    layout["shapes"] = _lines(one)
    label = f"What is left of the budget of {budget.queue.name}, by day"
    return Chart("budget", label, HEIGHT, data, layout)


def _at(day: Any) -> str:
    return f"{day:%F}T12:00:00"


def _aware(day: Any, tz: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), tz)


def _line(
    name: str, x: list[str], y: list[float], colour: str, width: float, dash: str = ""
) -> dict[str, Any]:
    line: dict[str, Any] = {"color": colour, "width": width}
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": [round(v, 2) for v in y],
        "line": line | ({"dash": dash} if dash else {}), "hovertemplate": "%{y:,.0f}",
    }  # fmt: skip


def _band(one: Spending) -> list[dict[str, Any]]:
    if not one.ahead:
        return []
    x = [_at(one.days[-1][0]), *(_at(each.day) for each in one.ahead)]
    high = [one.left, *(each.high for each in one.ahead)]
    low = [one.left, *(each.low for each in one.ahead)]
    quiet = {"hoverinfo": "skip", "line": {"width": 0, "color": theme.OWN}}
    upper = _line("P10", x, high, theme.OWN, 0.0) | quiet
    lower = _line("P90", x, low, theme.OWN, 0.0) | quiet
    return [upper, {**lower, "fill": "tonexty", "fillcolor": "var(--own-pale)"}]


def _forecast(one: Spending) -> list[dict[str, Any]]:
    if not one.ahead:
        return []
    x = [_at(one.days[-1][0]), *(_at(each.day) for each in one.ahead)]
    return [_line("P50", x, [one.left, *(e.p50 for e in one.ahead)], theme.OWN, 2.0, DOTTED)]


def _lines(one: Spending) -> list[dict[str, Any]]:
    """Today, and the day on which it is spent."""
    if not one.days:
        return []
    lines = [_upright(one.days[-1][0], theme.TEXT, 1.0)]
    return [*lines, _upright(one.runs_out, ERR, 0.3)] if one.runs_out else lines


def _upright(day: Any, colour: str, top: float) -> dict[str, Any]:
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": _at(day), "x1": _at(day), "y0": 0,
        "y1": top, "line": {"color": colour, "width": 1.5},
    }  # fmt: skip


def _labels(one: Spending, currency: str) -> list[dict[str, Any]]:
    labels = []
    if one.ahead:
        labels.append(theme.label("P50, P10 to P90", one.ahead[-1].p50))
    labels.append(
        theme.label("even spending", one.amount * 0.7, x=0.02, font={"color": theme.MUTED})
    )
    if one.runs_out:
        labels.append(
            theme.label(
                f"spent on {one.runs_out.day} {one.runs_out:%b}", one.amount * 0.34, bold=True,
                x=_at(one.runs_out), xref="x", xanchor="center", xshift=0, font={"color": ERR},
            )
        )  # fmt: skip
    if one.days:
        day, left = one.days[-1]
        text = f"{day.day} {day:%b}, {whole_money(left, currency)} left"
        labels.append(theme.label(text, left, bold=True, x=_at(day), xref="x", xshift=4, yshift=14))
    return labels
