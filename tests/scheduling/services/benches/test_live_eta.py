"""Start forecasts of a life on an embedded cluster: what is counted, and that passes write what is judged."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.models import ForecastRun
from scheduling.services.starts import refresh
from tests.scheduling.kube import World
from workshop.benches.worker.live_eta import EVERY_S, ToldForecast, figures, tell


def test_shares_are_of_all_of_small_and_large_gangs_and_of_what_was_told_first() -> None:
    found = figures(
        [
            ToldForecast(True, 1, 60, 120, 50, 200),
            ToldForecast(False, 1, 60, 120, 100, 200),
            ToldForecast(False, 8, 60, 120, 200, 200),
            ToldForecast(False, 16, 60, 120, None, 200),
        ]
    )
    before = {name: found[f"{name}before_p50_pct"] for name in ("", "small_", "large_", "submit_")}
    assert before == {"": 25, "small_": 50, "large_": 0, "submit_": 100}
    assert (found["band_p50_p90_pct"], found["large_before_p90_pct"]) == (25, 0)
    assert found["forecasts"] == 4


@pytest.mark.parametrize("start_s", [50, None])
def test_forecast_whose_p90_the_life_does_not_reach_is_not_judged(start_s: float | None) -> None:
    """Nor is it where it has come true by then: those that have not might have as well."""
    found = figures(
        [ToldForecast(True, 1, 60, 120, 50, 120), ToldForecast(True, 1, 60, 121, start_s, 120)]
    )
    assert (found["forecasts"], found["before_p90_pct"], found["open"]) == (1, 100, 1)


def test_few_forecasts_have_wide_bounds() -> None:
    found = figures(
        [ToldForecast(True, 1, 60, 120, 50, 200), ToldForecast(True, 1, 60, 120, 100, 200)]
    )
    names = ("before_p50_pct", "before_p50_low_pct", "before_p50_high_pct")
    assert [found[name] for name in names] == [50, 9.45, 90.55]


def test_pass_is_made_when_it_is_due_by_the_clock_of_the_cluster(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    rest = refresh._rest
    monkeypatch.setattr(refresh, "_rest", lambda *args: passes.append("rest") or rest(*args))
    tell(world.cluster)
    tell(world.cluster)
    assert passes == ["rest"]
    run = ForecastRun.objects.get()
    ForecastRun.objects.update(at=run.at - timedelta(seconds=EVERY_S))
    tell(world.cluster)
    assert passes == ["rest", "rest"]
