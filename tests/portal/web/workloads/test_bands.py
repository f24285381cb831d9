"""Starts by class on one axis."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from portal.web.workloads.ahead import ClassOutlook, StartVerdict, _on_one_axis
from scheduling.models import GpuClass

NOW = datetime(2026, 1, 5, tzinfo=UTC)
H = timedelta(hours=1)
ROW = ClassOutlook(GpuClass(name="a"), 1, StartVerdict("warn", "clock", "Waits", ""), None, "", "")


@pytest.mark.parametrize(
    ("begins", "bands", "until"),
    [
        ([(1, 3), (2, 10)], [(10.0, 20.0), (20.0, 80.0)], 10),
        ([(0, 0), (5, 10)], [(0.0, 1.0), (50.0, 50.0)], 10),
        ([(10, 10)], [(99.0, 1.0)], 10),
        ([None, (1, 2)], [None, (50.0, 50.0)], 2),
        ([(0, 0)], [None], None),
        ([None], [None], None),
    ],
)
def test_starts_of_all_classes_lie_on_one_axis(begins, bands, until):
    rows = [
        replace(ROW, begin=(NOW + one[0] * H, NOW + one[1] * H) if one else None) for one in begins
    ]
    placed, end = _on_one_axis(rows, NOW)
    assert [row.band for row in placed] == bands
    assert end == (NOW + until * H if until else None)
