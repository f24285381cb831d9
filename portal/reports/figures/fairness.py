"""The queue that missed most over time, and how unequal queues fared by period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from portal.reports.entitlements import Entitlement, QueueCourse
from portal.reports.figures import Chart, down, theme
from portal.reports.outages import Outage

HEIGHT = 252
TOP, BOTTOM = 16, 32


def received(one: QueueCourse, outages: Sequence[Outage], zone: ZoneInfo) -> Chart:
    """Received as an area, entitled as a line above it, nominal dotted; above the plot what was down."""
    room = down.room(outages)
    plot_px = HEIGHT - TOP - BOTTOM - room
    layout = theme.layout(left=40, right=112, top=TOP + room, bottom=BOTTOM)
    layout["shapes"], said = down.drawn(outages, zone, plot_px)
    top = max(1.0, *(float(np.nanmax(v)) for v in (one.received, one.entitled, one.nominal))) * 1.1
    layout["xaxis"] = theme.time_axis(one.starts[0], one.starts[-1], zone)
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero")
    x = [theme.local(at, zone) for at in one.starts]
    area = _line("received", x, one.received, theme.OWN)
    data = [
        {**area, "fill": "tozeroy", "fillcolor": "var(--own-pale)"},
        _line("entitled", x, one.entitled, "var(--fair)"),
        _line("nominal", x, one.nominal, theme.TEXT, "2px,3px"),
    ]
    wanted = [
        (f"{name} {values[-1]:,.0f}", float(values[-1]))
        for name, values in (
            ("received", one.received), ("entitled", one.entitled), ("nominal", one.nominal),
        )
    ]  # fmt: skip
    heights = theme.apart([y for _, y in wanted], theme.LABEL_GAP_PX * top / plot_px)
    layout["annotations"] = said + [
        theme.label(text, y) for (text, _), y in zip(wanted, heights, strict=True)
    ]
    return Chart(
        "received", f"GPUs of {one.path}: received, entitled, nominal", HEIGHT, data, layout
    )


def _line(name: str, x: list[str], y: Any, colour: str, dash: str = "") -> dict[str, Any]:
    line: dict[str, Any] = {"color": colour, "width": 1.5, "shape": "hv"}
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": theme.numbers(y),
        "line": line | ({"dash": dash} if dash else {}), "hovertemplate": "%{y:.1f}",
    }  # fmt: skip


def inequality(found: Entitlement, zone: ZoneInfo) -> Chart:
    """1 − Jain in percent, so that its axis begins where all fare alike."""
    values = 100 * found.inequality
    layout = theme.layout(left=40, right=64, top=TOP, bottom=BOTTOM)
    layout["xaxis"] = theme.period_axis(found.periods, zone)
    highest = 100 * (1 - found.jain_before) if found.jain_before is not None else 0.0
    top = max(1.0, highest, float(np.nanmax(values, initial=0.0))) * 1.15
    layout["yaxis"] = theme.axis(range=[0, top], nticks=5, rangemode="tozero")
    line = _line("1 − Jain, %", theme.period_middles(found.periods, zone), values, theme.OWN)
    line["line"]["shape"] = "linear"
    data = [line]
    known = values[~np.isnan(values)]
    labels = [(f"{known[-1]:.1f} now", float(known[-1]), True)] if len(known) else []
    if found.jain_before is not None:
        before = 100 * (1 - found.jain_before)
        level = _line("before", line["x"], np.full(len(values), before), theme.MUTED, "4px,3px")
        data.append(level)
        labels.append((f"{before:.1f} before", before, False))
    gap = theme.LABEL_GAP_PX * top / (HEIGHT - TOP - BOTTOM)
    heights = theme.apart([y for _, y, _ in labels], gap)
    layout["annotations"] = [
        theme.label(text, y, bold=bold) for (text, _, bold), y in zip(labels, heights, strict=True)
    ]
    label = f"Inequality by {found.periods.unit}: 1 minus Jain's index, in percent"
    return Chart("inequality", label, HEIGHT, data, layout)
