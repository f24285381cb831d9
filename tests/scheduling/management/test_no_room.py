"""An allocation that is too much is an error in words."""

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from scheduling.management.commands import plan


def test_plan_that_asks_for_more_memory_than_there_is_says_so(monkeypatch, tmp_path):
    def greedy(*args):
        return np.zeros(2**59, dtype=np.int64)

    monkeypatch.setattr(plan, "read_snapshot", greedy)

    with pytest.raises(CommandError, match="more memory than there is") as refused:
        call_command("plan", str(tmp_path / "now.yaml"))
    assert refused.value.returncode == 2
