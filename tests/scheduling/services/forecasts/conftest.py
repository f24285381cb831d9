"""Each test begins with nothing spent."""

from __future__ import annotations

import pytest

from scheduling.services.forecasts import budget, learning, predicting


@pytest.fixture(autouse=True)
def nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "BUDGET", budget.Budget(cpu=lambda: 0.0))
    monkeypatch.setattr(predicting, "BUDGET", budget.Budget(cpu=lambda: 0.0))
