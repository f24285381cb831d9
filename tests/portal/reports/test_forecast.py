"""The forecast's page: against what there is, whose it is, and when demand passes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from portal.reports.figures import forecast as figures
from portal.reports.forecast import ForecastReport, forecast
from portal.reports.words import forecast_finding
from scheduling.models import DemandForecast, GpuClass, Node, Queue, Share
from tests.portal.reports.conftest import END, Small
from tests.portal.reports.test_pages import client_of, filled, url  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db
WEEK = timedelta(weeks=1)


def tell(
    queue: Queue,
    gpu_class: GpuClass,
    hours: float = 4,
    weeks: list[float] | None = None,
    **fields: Any,
) -> DemandForecast:
    """A forecast whose P90 is 2 above and whose P10 2 below its P50."""
    weeks = weeks or [hours] * 26
    return DemandForecast.objects.create(
        queue=queue, gpu_class=gpu_class, made_at=END,
        hours=around([hours] * 168), weeks=around(weeks), known_days=100,
        scores=[{"days_ahead": 1, "error": 1.0, "last_week_error": 2.0, "held": 0.8, "forecasts": 9}],
        **fields,
    )  # fmt: skip


def around(middle: list[float]) -> dict[str, list[float]]:
    shifts = {"p10": -2, "p25": -1, "p50": 0, "p75": 1, "p90": 2}
    return {name: [max(0.0, gpus + by) for gpus in middle] for name, by in shifts.items()}


@pytest.fixture
def told(small: Small) -> Small:
    """8 ready h100 of 16; demand passes them in the third week."""
    for name, ready in (("a", True), ("b", False)):
        Node.objects.create(
            cluster=small.cluster, gpu_class=small.h100, name=name, gpus=8000, ready=ready
        )
    tell(small.root, small.h100, 6, [6, 7, 9, *[10] * 23])
    return small


def report(small: Small, user: object = None, **filters: object) -> ForecastReport:
    return forecast(small.cluster, small.last(**filters), user or small.operator)  # type: ignore[arg-type]


def test_cluster_is_held_against_what_is_ready(told: Small) -> None:
    row = report(told).rows[0]
    assert (row.installed, row.capacity, row.hours_above, row.peak) == (16, 8, 0, 6)


def test_demand_passes_where_its_weekly_mean_does(told: Small) -> None:
    at = report(told).rows[0].passing
    assert at is not None
    assert (at.early, at.middle, at.late) == (END + WEEK, END + 2 * WEEK, None)


def test_subtree_is_held_against_its_nominal(told: Small) -> None:
    Share.objects.create(queue=told.research, gpu_class=told.h100, nominal=5000)
    tell(told.research, told.h100, 6)
    found = report(told, told.lead)
    assert (found.against, found.rows[0].capacity, found.rows[0].hours_above) == ("nominal", 5, 168)
    assert found.tables()[0].as_dicts()[0]["installed"] is None


def test_leaf_of_which_no_forecast_is_made_offers_those_there_are(told: Small) -> None:
    found = report(told, queue="vision")
    assert found.is_empty
    assert found.choices == ()
    tell(told.research, told.h100)
    assert report(told, told.lead, queue="vision").queue is None
    assert "fra1" not in report(told, told.lead).choices


def test_class_without_a_forecast_says_why(told: Small) -> None:
    tell(told.root, told.mig, why_not="nothing is known")
    mig = report(told).rows[1]
    assert (mig.why_not, mig.hours_above, mig.passing) == ("nothing is known", None, None)
    assert not mig.holds


def test_known_demand_of_the_range_counts_hours_above_what_there_was(told: Small) -> None:
    for ago, gpus, ready in ((1, 10, 8), (2, 6, 8), (3, 9, 12)):
        told.sample(told.root, told.h100, hours_ago=ago, demand=gpus, ready=ready, installed=16)
    row = report(told).rows[0]
    assert row.mean == pytest.approx(25 / 3)
    assert row.above_hours == 1


def test_finding_names_the_class_and_the_day(told: Small) -> None:
    said = str(forecast_finding(report(told)))
    assert said.startswith("Demand for h100 passes its 8 ready GPUs on 3 Dec 2026")


def test_finding_says_when_all_hold(told: Small) -> None:
    DemandForecast.objects.all().delete()
    tell(told.root, told.h100, 3)
    assert "No class passes what it has in 26 weeks" in str(forecast_finding(report(told)))


def test_charts_stand_in_the_zone_of_the_range(told: Small) -> None:
    # Its half hour: the middle of the first hour is a whole one there.
    there = ZoneInfo("Asia/Kolkata")
    found = report(told, zone="Asia/Kolkata")
    chart = figures.next_week(found, found.chosen, found.past, found.chosen.row)
    (p50,) = [line for line in chart.data if line.get("name") == "P50"]
    first = found.chosen.row.made_at + timedelta(minutes=30)
    assert p50["x"][0] == f"{first.astimezone(there):%Y-%m-%dT%H:%M:%S}"


def test_page_shows_charts_scores_and_tables(filled: Small) -> None:  # noqa: F811
    Node.objects.create(cluster=filled.cluster, gpu_class=filled.h100, name="a", gpus=8000)
    tell(
        filled.root, filled.h100, 6, [6, 7, 9, *[10] * 23],
        earlier={"days_ago": 21, "p10": [1, 1, 1], "p50": [2, 2, 2], "p90": [3, 3, 3], "came": [2, 2, 4]},
    )  # fmt: skip
    page = client_of(filled.operator).get(url("forecast"))
    text = page.content.decode()
    for name in ("plot-next-week", "plot-trend", "plot-earlier"):
        assert name in text
    assert "Tested on later data" in text
    tables = client_of(filled.operator).get(url("forecast", suffix="json")).json()
    assert len(tables["hours"]) == 168
    assert tables["hours"][0]["start"] == END.isoformat()
    assert tables["classes"][0]["passes_p50"] == (END + 2 * WEEK).isoformat()


@pytest.mark.parametrize(
    ("error", "held", "verdict"),
    [(1.0, 0.8, "holds"), (2.34, 0.8, "last week is nearer"), (2.34, 0.5, "too sure")],
)
def test_forecast_further_off_than_last_week_is_not_said_to_hold(
    filled: Small,  # noqa: F811
    error: float,
    held: float,
    verdict: str,
) -> None:
    Node.objects.create(cluster=filled.cluster, gpu_class=filled.h100, name="a", gpus=8000)
    told = tell(filled.root, filled.h100)
    told.scores = [told.scores[0] | {"error": error, "held": held}]
    told.save()
    page = client_of(filled.operator).get(url("forecast"))
    assert [row[2] for row in page.context["score_rows"]] == [verdict]


def test_without_any_forecast_the_page_says_what_it_takes(filled: Small) -> None:  # noqa: F811
    text = client_of(filled.operator).get(url("forecast")).content.decode()
    assert "two weeks of demand" in text
