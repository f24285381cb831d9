"""Two weeks that the example organisation has behind it, lived in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from portal.demo import organisation as org
from scheduling.models import Cluster
from scheduling.services.embedded import EmbeddedCluster
