"""Moments as forms begin with them: local time of the page."""

from __future__ import annotations

from datetime import datetime

from portal.display.format import zone

LOCAL = "%Y-%m-%dT%H:%M"


def local(at: datetime | None, zone_name: str) -> str:
    return at.astimezone(zone(zone_name)).strftime(LOCAL) if at else ""
