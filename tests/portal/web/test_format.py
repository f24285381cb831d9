from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from django.template import Context, Template
from django.utils.html import strip_tags

from portal.display import format as show

NOW = datetime(2026, 11, 19, 9, 42, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (4000, "4"),
        (500, "0.5"),
        (143, "0.1"),
        (71, "0.071"),
        (1_234_000, "1,234"),
        (13_333.3, "13.3"),
        (0, "0"),
        (-0.0, "0"),
        (-4000, "−4"),
        (None, "–"),
    ],
)
def test_gpus_read_as_gpus(milli, text):
    assert show.gpus(milli) == text


@pytest.mark.parametrize(
    ("milli", "text"), [(1000, "+1"), (-5000, "−5"), (0, "0"), (0.2, "0"), (None, "–")]
)
def test_difference_carries_a_real_sign(milli, text):
    assert show.signed(milli) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (59.7, "1 min"),
        (60, "1 min"),
        (38 * 60, "38 min"),
        (9840, "2 h 44 min"),
        (11_100, "3 h 05 min"),
        (7200, "2 h"),
        (90_000, "1 d 1 h"),
        (86_400, "1 d"),
        (timedelta(hours=15, minutes=37), "15 h 37 min"),
        (-5, "0 s"),
        (None, "–"),
    ],
)
def test_duration_names_two_units_at_most(seconds, text):
    assert show.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(1500, "0:25"), (0, "0:00"), (40_000, "11:07"), (None, "–")]
)
def test_wait_in_tables_is_hours_and_minutes(seconds, text):
    assert show.hmin(seconds) == text


def test_gpu_hours_lose_their_decimal_from_a_hundred_on():
    assert show.gpu_hours(7.5 * 3600) == "7.5"
    assert show.gpu_hours(270.4 * 3600) == "270"
    assert (show.hours(78319.4), show.hours(1.64), show.hours(0)) == ("78,319", "1.6", "0")


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0.8703, "87 %"), (0.6667, "66.7 %"), (0.0024, "0.2 %"), (0.0003, "< 0.1 %"),
        (0.9998, "> 99.9 %"), (0, "0 %"), (1, "100 %"), (1.2, "120 %"), (None, "–"),
    ],
)  # fmt: skip
def test_share_reads_to_a_tenth_and_never_as_none_or_all_of_it(part, text):
    assert show.percent(part) == text


def test_ratio_reads_to_a_hundredth():
    assert (show.ratio(1.176), show.ratio(2), show.ratio(None)) == ("1.18", "2.00", "–")


def test_money_names_its_currency():
    assert show.money(Decimal("436.8")) == "€436.80"
    assert show.money(Decimal(-5), "USD") == "−$5.00"
    assert show.money(Decimal("1234.5"), "CHF") == "CHF 1,234.50"


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0, "10:42"),
        (16, "Fri 02:42"),
        (-48, "Tue 10:42"),
        (72, "Sun 10:42"),
        (-96, "15 Nov 10:42"),
        (144, "25 Nov 10:42"),
        (24 * 8, "27 Nov 10:42"),
        (24 * 60, "18 Jan 2027 10:42"),
    ],
)
def test_time_is_as_short_as_it_stays_clear(hours, text):
    assert show.when(NOW + timedelta(hours=hours), NOW, "Europe/Berlin") == text


@pytest.mark.parametrize(("begins", "text"), [(-47, "12:42"), (-24, "Tue 12:42")])
def test_end_of_a_span_says_no_day_twice(begins, text):
    begin, end = NOW + timedelta(hours=begins), NOW + timedelta(hours=-46)
    assert show.when(end, NOW, "Europe/Berlin", after=begin) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("no_free_cpus", "too few CPUs"),
        ("awaits_victims", "GPUs come free"),
        ("", "not planned yet"),
    ],
)
def test_reason_inside_a_sentence_keeps_its_capitals(reason, text):
    assert show.reason_inside(reason) == text


def test_moment_of_a_cycle_is_told_to_the_second():
    zone = "Europe/Berlin"
    assert show.moment(NOW, zone) == "Thu 19 Nov 2026 10:42:16"
    assert show.second(NOW, NOW, zone) == "10:42:16"
    assert show.second(NOW - timedelta(days=1), NOW, zone) == "18 Nov 10:42:16"


@pytest.mark.parametrize(
    ("minutes", "said", "ago"),
    [
        (20, "10:22:16 CET", ""),
        (80, "09:22:16 CET", ", 1 h 20 min ago"),
        (15 * 60, "18 Nov 19:42:16 CET", ", 15 h ago"),
    ],
)
def test_plan_says_its_day_and_age_once_it_is_old(minutes, said, ago):
    at = NOW - timedelta(minutes=minutes)
    assert show.planned(at, NOW, "Europe/Berlin") == (said, ago)


def test_unknown_zone_falls_back_to_utc():
    assert show.clock(NOW, "Mars/Olympus") == "09:42:16 UTC"
    assert show.clock(NOW, "Europe/Berlin") == "10:42:16 CET"


@pytest.mark.parametrize(
    ("reason", "text"),
    [("at_limit", "At its limit"), ("", "Not planned yet"), ("of_tomorrow", "Of tomorrow")],
)
def test_reason_reads_as_its_cause(reason, text):
    assert show.reason_headline(reason) == text


def test_sixth_class_and_all_after_it_share_the_pattern():
    assert [show.class_number(i) for i in range(8)] == [1, 2, 3, 4, 5, 6, 6, 6]


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("2026-11-05T23:00", "2026-11-19T23:00", "6 Nov – 19 Nov 2026"),
        ("2025-12-30T23:00", "2026-01-02T23:00", "31 Dec 2025 – 2 Jan 2026"),
        ("2026-11-05T09:44", "2026-11-19T09:44", "5 Nov 10:44 – 19 Nov 10:44"),
    ],
)
def test_period_is_told_in_whole_days_where_it_is_of_such(start, end, said):
    begin, stop = (datetime.fromisoformat(at).replace(tzinfo=UTC) for at in (start, end))
    assert show.period(begin, stop, "Europe/Berlin") == said


@pytest.mark.parametrize(
    ("low", "high", "text"), [(1500, 4200, "0:25 – 1:10"), (1500, 1510, "0:25"), (0, 0, "0:00")]
)
def test_band_of_waits_that_ends_as_it_begins_is_one_wait(low, high, text):
    assert show.hmin_band(low, high) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7200, "10:42 to 12:42"), (20, "10:42"), (86400 - 7200 * 5, "10:42 to Fri 00:42")],
)
def test_band_of_one_minute_is_one_time(seconds, text):
    shell = SimpleNamespace(now=NOW, zone="Europe/Berlin")
    drawn = Template("{% load weir %}{% band begin end 'to' %}").render(
        Context({"shell": shell, "begin": NOW, "end": NOW + timedelta(seconds=seconds)})
    )
    assert strip_tags(drawn) == text
