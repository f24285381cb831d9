"""The days of a lived week as an SVG that stands by itself, for light and dark pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from workshop.demo.week import Day

WIDTH, PANEL, GAP, LEFT, TOP = 760, 96, 58, 56, 40
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#4b5563}.t{font-weight:600;fill:#111827}"
    ".g{stroke:#e1e4e9}.o{stroke:#006eb8;fill:none;stroke-width:2}.d{fill:#006eb8}"
    ".n{stroke:#7b8494;fill:none;stroke-width:1.5}.p{stroke:#4b5563;stroke-dasharray:5 3}"
    "@media(prefers-color-scheme:dark){text{fill:#9ca3af}.t{fill:#f3f4f6}.g{stroke:#2a3546}"
    ".o{stroke:#4ca8e6}.d{fill:#4ca8e6}.n{stroke:#7b8798}.p{stroke:#9ca3af}}"
)


@dataclass(frozen=True, slots=True)
class Panel:
    """``own`` as dots and a line, ``naive`` as a grey line beside it, ``target`` dashed."""

    title: str
    unit: str
    own: Callable[[Day], float | None]
    naive: Callable[[Day], float | None] | None = None
    target: float | None = None
    most: float | None = None


PANELS = (
    Panel("Run times: within P10 to P90", "%", lambda d: d.held_pct, target=80, most=100),
    Panel("Run times: median error", "powers of two", lambda d: d.error, lambda d: d.naive_error),
    Panel("Starts: before their P90", "%", lambda d: d.before_p90_pct, target=90, most=100),
    Panel(
        "Starts: median error", "% of the wait",
        lambda d: d.start_error_pct, lambda d: d.naive_start_error_pct,
    ),
)  # fmt: skip


def svg(days: Sequence[Day]) -> str:
    """Four panels above each other on one axis of days."""
    height = TOP + len(PANELS) * (PANEL + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' aria-label="Coverage and error of predictions by day">',
        f"<style>{STYLE}</style>",
    ]
    for number, panel in enumerate(PANELS):
        parts += _panel(panel, days, TOP + number * (PANEL + GAP))
    x = _xs(days)
    bottom = height - GAP + 34
    parts += [
        f'<text x="{at:.0f}" y="{bottom}" text-anchor="middle">{escape(day.day)}</text>'
        for at, day in zip(x, days, strict=True)
    ]
    return "\n".join([*parts, "</svg>", ""])


def _xs(days: Sequence[Day]) -> list[float]:
    step = (WIDTH - LEFT - 60) / max(1, len(days) - 1)
    return [LEFT + 30 + i * step for i in range(len(days))]


def _panel(panel: Panel, days: Sequence[Day], top: int) -> list[str]:
    own = [panel.own(day) for day in days]
    naive = [panel.naive(day) for day in days] if panel.naive else []
    most = panel.most or 1.1 * max((v for v in (*own, *naive) if v is not None), default=1.0)
    legend = "; grey: " + ("median of all" if "Run" in panel.title else "last 50 starts alike")
    note = f"{panel.unit}{legend if naive else '; dashed: as told'}"
    parts = [
        f'<text class="t" x="{LEFT}" y="{top - 10}">{panel.title}'
        f'<tspan font-weight="400" dx="8">{note}</tspan></text>'
    ]
    for share in (0.0, 0.5, 1.0):
        y = top + PANEL * (1 - share)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share * most:.3g}</text>'
        )
    if panel.target is not None:
        y = top + PANEL * (1 - panel.target / most)
        parts.append(f'<line class="p" x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}"/>')
    parts += _line("n", naive, days, top, most)
    parts += _line("o", own, days, top, most)
    parts += [
        f'<circle class="d" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        for x, y in _points(own, days, top, most)
    ]
    return parts


def _line(
    name: str, values: Sequence[float | None], days: Sequence[Day], top: int, most: float
) -> list[str]:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(values, days, top, most))
    return [f'<polyline class="{name}" points="{points}"/>'] if points else []


def _points(
    values: Sequence[float | None], days: Sequence[Day], top: int, most: float
) -> list[tuple[float, float]]:
    return [
        (x, top + PANEL * (1 - min(most, value) / most))
        for x, value in zip(_xs(days), values, strict=False)
        if value is not None
    ]
