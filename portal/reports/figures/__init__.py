"""Plotly figures as plain dicts, and the facts of a figure that its card needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chart:
    """``data`` and ``layout`` are Plotly's. Colours are names of CSS variables, ``var(--text)``;
    the browser fills them in, so that a chart follows the theme."""

    name: str
    label: str
    """What a screen reader says of the picture."""
    height: int
    """Pixels, fixed, so that nothing jumps."""
    data: list[dict[str, Any]]
    layout: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"data": self.data, "layout": {**self.layout, "height": self.height}}
