"""How a changed field and its values read in the audit log."""

from datetime import UTC, datetime

import pytest

from portal.web.audit.views import name_of, words_of

AT = datetime(2026, 12, 13, 6, 11, 2, 398201, tzinfo=UTC).isoformat()


@pytest.mark.parametrize(
    ("field", "value", "name", "words"),
    [
        ("wait_slo_s", 14_400, "wait slo", "4 h"),
        ("reserve_after_s", 604_800, "reserve after", "7 d"),
        ("language, h100-80gb, borrowing_limit", 12, "language, h100-80gb, borrowing limit", "12"),
        ("until", AT, "until", "2026-12-13 06:11:02 UTC"),
        ("ready", True, "ready", "yes"),
        ("names", ["a", "b"], "names", "a, b"),
        ("reason", "", "reason", "–"),
        ("at", "2026-99-13T06:11", "at", "2026-99-13T06:11"),
        ("price", 2.5, "price", "2.5"),
    ],
)
def test_field_reads_as_people_write_it(field, value, name, words):
    assert (name_of(field), words_of(field, value)) == (name, words)
