"""A day of the organisation lived from nothing, told, judged and drawn."""

from dataclasses import asdict, replace

import pytest

from scheduling.models import Workload
from workshop.demo.week import Day, lived
from workshop.demo.week_drawing import PANELS, svg
from workshop.management.commands.demo_week import table

DAY = Day("Mon 09 Nov", 285, 60.0, 0.91, 1.2, 50, 56.0, 22.0, 57.5, 88.3)
NOTHING = replace(
    DAY, runs=0, held_pct=None, error=None, naive_error=None, starts=0, before_p90_pct=None,
    in_band_pct=None, start_error_pct=None, naive_start_error_pct=None,
)  # fmt: skip


@pytest.mark.django_db
@pytest.mark.long
def test_day_is_told_before_it_comes_and_judged_after() -> None:
    [day] = lived(1, lambda line: None)
    assert day.runs > 50
    assert 0 < day.held_pct <= 100
    assert day.error > 0
    assert day.starts > 0
    assert not Workload.objects.exists()


def test_every_day_is_a_dot_in_every_panel() -> None:
    assert svg([DAY, DAY, DAY]).count("<circle") == 3 * len(PANELS)


def test_day_without_anything_to_judge_leaves_a_gap() -> None:
    assert svg([DAY, NOTHING, DAY]).count("<circle") == 2 * len(PANELS)


def test_table_has_a_line_a_day_and_a_dash_for_nothing() -> None:
    lines = table([asdict(DAY), asdict(NOTHING)])
    assert len(lines) == 3
    assert lines[2].split()[-1] == "-"
