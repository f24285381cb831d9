"""What attacks lean on."""

import pytest
import time_machine
from django.utils import timezone


@pytest.fixture
def time_machine_at():
    """``time_machine_at(delta)``: from now on it is that much later than when the test began."""
    started, travels = timezone.now(), []

    def later(delta):
        travel = time_machine.travel(started + delta, tick=True)
        travel.start()
        travels.append(travel)

    yield later
    for travel in reversed(travels):
        travel.stop()
