"""Where a demo plays, as people say it on the command line."""

from __future__ import annotations

import pytest

from workshop.demo.cluster.venue import Venue
from workshop.management.commands.demo import _default_folder


@pytest.mark.parametrize("text", ["embedded", "real", "context:kind-lab"])
def test_venue_is_one_of_three(text: str) -> None:
    assert Venue.parse(text).name == text


@pytest.mark.parametrize("text", ["", "reel", "context:", "kind-lab"])
def test_other_venues_are_refused_with_the_choices(text: str) -> None:
    with pytest.raises(ValueError, match="embedded, real nor context:NAME"):
        Venue.parse(text)


@pytest.mark.parametrize(
    ("venue", "trace", "speed"),
    [
        ("embedded", False, 60),
        ("embedded", True, 600),
        ("real", False, 10),
        ("context:a", True, 10),
    ],
)
def test_kubernetes_plays_slower_than_a_clock_of_ones_own(
    venue: str, trace: bool, speed: float
) -> None:
    assert Venue.parse(venue).speed(trace=trace) == speed


@pytest.mark.parametrize(
    ("trace", "cluster", "name"),
    [
        (None, "embedded", "demo"),
        (None, "real", "demo-real"),
        (None, "context:Kind_Lab", "demo-context-kind-lab"),
        ("Philly", "embedded", "demo-philly"),
        ("Philly", "real", "demo-philly-real"),
    ],
)
def test_each_venue_and_trace_keeps_its_own_data(
    tmp_path, trace: str | None, cluster: str, name: str
) -> None:
    assert _default_folder(tmp_path / trace if trace else None, cluster).name == name
