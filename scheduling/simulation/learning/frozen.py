"""Weights that were found once and stand in a file, with how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduling.engine.features import VICTIM_NAMES, vector
from scheduling.engine.model import Sharing
from scheduling.simulation.learning.judging import Order

FILE = Path(__file__).with_name("frozen.json")


@dataclass(frozen=True, slots=True)
class Frozen:
    """An order as it was found: which idea, on which windows, by which search."""

    order: Order
    made: Mapping[str, Any]


def read_frozen(file: Path = FILE) -> list[Frozen]:
    """Every order of the file, the one that is judged first. Raises KeyError for an unknown feature."""
    found = []
    for row in json.loads(file.read_text(encoding="utf-8"))["orders"]:
        victims = row.get("victim_weights", {})
        vector(row["weights"])
        vector(victims, VICTIM_NAMES)
        order = Order(row["name"], Sharing(row["sharing"]), row["weights"], victims)
        found.append(Frozen(order, row["made"]))
    return found


def write_frozen(rows: list[dict[str, Any]], file: Path = FILE) -> None:
    """``rows``: name, sharing, weights, those of victims if any, and how they were made."""
    text = json.dumps({"orders": rows}, indent=2)
    file.write_text(f"{text}\n", encoding="utf-8")
