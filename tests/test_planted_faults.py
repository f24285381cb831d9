"""The faults that `make mutants` plants can still be planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.planted import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("fault", MUTANTS, ids=lambda one: one.fault)
def test_text_that_a_fault_replaces_stands_in_its_file(fault: Mutant) -> None:
    assert (ROOT / fault.path).read_text().count(fault.old) == fault.times
