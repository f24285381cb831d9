"""Names of lanes, and how much their processes give way. Settings read it: nothing here needs Django."""

from __future__ import annotations

CLUSTERS = "clusters"
"""Told to a worker: the lanes of all clusters, each with cycles and what needs their mirrors."""
GENERAL = "celery"
"""Of short work that beat asks for."""
STUDIES = "studies"
"""Of what computes for seconds at a time."""
LOWEST = 19
NICE = {CLUSTERS: 0, GENERAL: LOWEST, STUDIES: LOWEST}
"""Lane -> how much its process gives way to others: what is no cycle takes what cycles leave."""
