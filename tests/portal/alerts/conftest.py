"""The small cluster of the reports, its clock at END."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduling.models import Cluster
from tests.portal.reports.conftest import END, Small


@pytest.fixture
def small(db: None) -> Small:
    made = Small()
    Cluster.objects.filter(pk=made.cluster.pk).update(
        clock_real=datetime.now(UTC),
        clock_start=END,
        clock_speed=1e-9,
        planned_at=datetime.now(UTC),
    )
    made.cluster.refresh_from_db()
    return made
