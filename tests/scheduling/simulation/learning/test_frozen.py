"""The orders that ship: a file that names what the engine knows, and how each was made."""

from __future__ import annotations

from scheduling.engine.features import NAMES, VICTIM_NAMES
from scheduling.simulation.learning.frozen import read_frozen
from scheduling.simulation.learning.search import STARTS


def test_the_shipped_file_names_features_and_how_it_was_made() -> None:
    shipped = read_frozen()

    assert shipped
    for frozen in shipped:
        assert frozen.order.sharing in STARTS
        assert set(frozen.order.weights) <= set(NAMES)
        assert set(frozen.order.victim_weights) <= set(VICTIM_NAMES)
        assert {"seed", "windows", "generations", "population"} <= set(frozen.made)
