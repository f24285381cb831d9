"""Fields whose unit is a person's."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django import forms

from portal.boundary.fields import LastDayField


def test_last_day_ends_at_midnight_of_its_zone():
    field = LastDayField()
    field.zone = ZoneInfo("Europe/Berlin")

    assert field.clean("2026-12-31") == datetime(2026, 12, 31, 23, tzinfo=UTC)


def test_last_day_of_the_calendar_is_a_fault_of_the_field():
    with pytest.raises(forms.ValidationError):
        LastDayField().clean("9999-12-31")


def test_last_day_left_empty_is_no_end():
    assert LastDayField(required=False).clean("") is None
