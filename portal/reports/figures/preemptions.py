"""Evictions over time, stacked by rule."""

from __future__ import annotations

from typing import Any

from portal.reports.figures import Chart, theme
from portal.reports.preemptions import PreemptionsReport
from scheduling.models import EvictionRule

HEIGHT = 252
TOP, BOTTOM = 16, 32
COLOURS = {
    EvictionRule.RECLAIM.value: "var(--series-1)",
    EvictionRule.PREEMPT.value: "var(--series-4)",
    EvictionRule.GIVE_WAY.value: "var(--series-2)",
    EvictionRule.CONSOLIDATE.value: "var(--series-3)",
    EvictionRule.STALE_GANG.value: "var(--series-6)",
    EvictionRule.DRAIN.value: "var(--class-5)",
}


def by_rule(report: PreemptionsReport) -> Chart:
    """One bar a period; rules that evicted nobody are left out."""
    rules = [rule for rule in COLOURS if report.rule_count(rule)]
    layout = theme.layout(left=36, right=136, top=TOP, bottom=BOTTOM)
    layout |= {"barmode": "stack", "bargap": 0.24}
    columns = zip(*report.by_rule.values(), strict=True)
    top = max(4, *(sum(column) for column in columns)) * 1.04
    layout["xaxis"] = theme.period_axis(report.periods, report.filters.tz)
    layout["yaxis"] = theme.axis(range=[0, top], nticks=6, tickformat=",d", rangemode="tozero")
    data = [_bars(report, rule) for rule in rules]
    layout["annotations"] = _labels(report, rules, top)
    label = f"Evictions by {report.periods.unit} and rule"
    return Chart("by-rule", label, HEIGHT, data, layout)


def rule_name(rule: str) -> str:
    return str(EvictionRule(rule).label)


def _bars(report: PreemptionsReport, rule: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": rule_name(rule),
        "x": theme.period_middles(report.periods, report.filters.tz),
        "y": list(report.by_rule[rule]),
        "marker": {"color": COLOURS[rule], "line": {"color": theme.SURFACE, "width": 1}},
        "hovertemplate": "%{y}",
    }


def _labels(report: PreemptionsReport, rules: list[str], top: float) -> list[dict[str, Any]]:
    """Right of the bars, in their order, each beside the middle of its share of a full column."""
    per_px = top / (HEIGHT - TOP - BOTTOM)
    total, below, wanted = report.count, 0, []
    for rule in rules:
        count = report.rule_count(rule)
        wanted.append((below + count / 2) / total * top * 0.8)
        below += count
    heights = theme.apart(wanted, 1.3 * theme.LABEL_GAP_PX * per_px)
    labels = []
    for rule, y in zip(rules, heights, strict=True):
        text = f"{rule_name(rule)} {report.rule_count(rule):,}"
        labels.append(theme.label("■", y, font={"color": COLOURS[rule], "size": 14}))
        labels.append(theme.label(text, y, xshift=24))
    return labels
