"""How numbers, times and states read to people. Pure functions; templates reach them as filters.

GPU figures come in as milli-GPU, durations as seconds, instants as aware UTC datetimes.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from scheduling.models import headline

MINUS = "−"
NONE = "–"
MILLI = 1000
Number = int | float | Decimal


def number(value: Number, decimals: int = 0) -> str:
    """1234.5 -> '1,234.5': thousands apart, at most ``decimals`` places, no trailing zeros."""
    value = float(value)
    text = f"{abs(value):,.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{MINUS}{text}" if value < 0 and text != "0" else text


def gpus(milli: Number | None) -> str:
    """4000 -> '4', 500 -> '0.5', 1234000 -> '1,234'. Below a tenth, to the milli-GPU; None -> '–'."""
    if milli is None:
        return NONE
    whole = float(milli) / MILLI
    return number(whole, 3 if 0 < abs(whole) < 0.1 else 1)


def gpus_counted(milli: Number | None, unit: str = "GPUs") -> str:
    """4000 -> '4 GPUs', 1000 -> '1 GPU'."""
    text = gpus(milli)
    return f"{text} {unit.removesuffix('s') if text == '1' else unit}"


def counted(value: Number, word: str) -> str:
    """(3, 'start') -> '3 starts', (1, 'start') -> '1 start'; 'person,people' names both forms."""
    one, _, several = word.partition(",")
    return f"{number(value)} {one if value == 1 else several or f'{one}s'}"


def percent(part: Number | None) -> str:
    """A share to a tenth: 0.6667 -> '66.7 %', 0.25 -> '25 %'; None -> '–'.

    What is not nothing, or not all, never reads as if it were: '< 0.1 %', '> 99.9 %'.
    """
    if part is None:
        return NONE
    value = float(part)
    if 0 < value < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= value < 1:
        return "> 99.9 %"
    return f"{number(100 * value, 1)} %"


def memory(mib: Number) -> str:
    """'310 MiB', '1.4 GiB'."""
    return f"{number(mib)} MiB" if mib < 1024 else f"{number(mib / 1024, 1)} GiB"


def ratio(value: Number | None) -> str:
    """One amount for another, to a hundredth: '1.18'; None -> '–'."""
    return NONE if value is None else f"{float(value):.2f}"


def signed(milli: Number | None) -> str:
    """A difference in GPUs with its sign: '+4', '−0.5', '0'."""
    text = gpus(milli)
    return text if text in {"0", NONE} or text.startswith(MINUS) else f"+{text}"


def added(milli: Number) -> str:
    """What a step adds, a zero with its sign too: '+0'."""
    return f"+{gpus(milli)}"


def duration(seconds: Number | timedelta | None) -> str:
    """9840 -> '2 h 44 min'; two units at most, 'less than a second' never appears: 0 -> '0 s'."""
    if seconds is None:
        return NONE
    total = _seconds(seconds)
    if total < 60:
        return f"{total} s"
    minutes = total // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return _pair(days, "d", hours, "h")
    if hours:
        return f"{hours} h {rest:02d} min" if rest else f"{hours} h"
    return f"{rest} min"


def hmin(seconds: Number | timedelta | None) -> str:
    """1500 -> '0:25': hours and minutes for tables."""
    if seconds is None:
        return NONE
    minutes = round(_seconds(seconds) / 60)
    return f"{minutes // 60:,}:{minutes % 60:02d}"


def hmin_band(low_s: Number, high_s: Number) -> str:
    """'0:25 – 1:10'; '0:25' where both read so."""
    low, high = hmin(low_s), hmin(high_s)
    return low if low == high else f"{low} – {high}"


def gpu_hours(gpu_seconds: Number | None) -> str:
    """GPU-seconds (whole GPUs times seconds) as ``hours`` tells them."""
    return hours(None if gpu_seconds is None else float(gpu_seconds) / 3600)


def hours(gpu_hours: Number | None) -> str:
    """GPU-hours, one decimal below a hundred: 7.52 -> '7.5', 78319.4 -> '78,319'; None -> '–'."""
    if gpu_hours is None:
        return NONE
    return number(gpu_hours, 1 if abs(float(gpu_hours)) < 100 else 0)


_SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}


def money(amount: Number | None, currency: str = "EUR") -> str:
    """Decimal('436.8') -> '€436.80'; an unknown currency stands before the sum as its code."""
    if amount is None:
        return NONE
    symbol = _SYMBOLS.get(currency, f"{currency} ")
    sign = MINUS if amount < 0 else ""
    return f"{sign}{symbol}{abs(amount):,.2f}"


def whole_money(amount: Number | None, currency: str = "EUR") -> str:
    """Decimal('271205.4') -> '€271,205', for tables; None -> '–'."""
    if amount is None:
        return NONE
    rounded = round(float(amount))
    return money(rounded, currency).removesuffix(".00")


def zone(name: str) -> ZoneInfo:
    """The time zone of that name; UTC when the system does not know it."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def when(at: datetime, now: datetime, zone_name: str, *, after: datetime | None = None) -> str:
    """Local time as short as it stays clear: '10:42' today, 'Fri 02:30' within three days to either
    side, so that no weekday may be two days, '12 Nov 16:04', with the year when it is another one. Where
    ``after`` stands before it, of the same day: '16:04'."""
    local, today = at.astimezone(zone(zone_name)), now.astimezone(zone(zone_name))
    days = abs((local.date() - today.date()).days)
    is_said = after is not None and after.astimezone(zone(zone_name)).date() == local.date()
    if days == 0 or is_said:
        return f"{local:%H:%M}"
    if days <= 3:
        return f"{local:%a %H:%M}"
    year = "" if local.year == today.year else f" {local.year}"
    return f"{local.day} {local:%b}{year} {local:%H:%M}"


def clock(at: datetime, zone_name: str) -> str:
    """'10:42:16 CET'."""
    return f"{at.astimezone(zone(zone_name)):%H:%M:%S %Z}"


def moment(at: datetime, zone_name: str) -> str:
    """To the second, of whatever day: 'Thu 19 Nov 2026 10:42:16'."""
    local = at.astimezone(zone(zone_name))
    return f"{local:%a} {local.day} {local:%b %Y %H:%M:%S}"


def second(at: datetime, near: datetime, zone_name: str) -> str:
    """'10:42:16' on the local day of ``near``; elsewhere '18 Nov 10:42:16'."""
    local, other = at.astimezone(zone(zone_name)), near.astimezone(zone(zone_name))
    day = "" if local.date() == other.date() else f"{local.day} {local:%b} "
    return f"{day}{local:%H:%M:%S}"


def planned(at: datetime, now: datetime, zone_name: str) -> tuple[str, str]:
    """('10:42:16 CET', ''); with its day where that is another one, and with its age from an hour on:
    ('18 Nov 10:42:16 CET', ', 21 h ago')."""
    ago = f", {duration(now - at)} ago" if now - at >= timedelta(hours=1) else ""
    return f"{second(at, now, zone_name)} {at.astimezone(zone(zone_name)):%Z}", ago


def period(start: datetime, end: datetime, zone_name: str) -> str:
    """[start, end): '20 Oct – 18 Nov 2026'; with hours where it does not begin and end at midnight."""
    first, after = start.astimezone(zone(zone_name)), end.astimezone(zone(zone_name))
    if first.time() == after.time() == time():
        last = (end - (end - start) / 10**6).astimezone(zone(zone_name))
        year = "" if first.year == last.year else f" {first.year}"
        return f"{first.day} {first:%b}{year} – {last.day} {last:%b %Y}"
    return f"{first.day} {first:%b %H:%M} – {after.day} {after:%b %H:%M}"


def utc(at: datetime) -> str:
    """'2026-11-19 09:42:16 UTC', what stands in the title of every time."""
    return f"{at.astimezone(ZoneInfo('UTC')):%Y-%m-%d %H:%M:%S} UTC"


def reason_headline(reason: str) -> str:
    """The bold words before a reason's sentence; a code of a later version reads as itself."""
    if not reason:
        return "Not planned yet"
    try:
        return headline(reason)
    except ValueError:
        return reason.replace("_", " ").capitalize()


def reason_inside(reason: str) -> str:
    """The same inside a sentence: 'too few CPUs', 'GPUs come free'."""
    head = reason_headline(reason)
    return head if head[1:2].isupper() else head[:1].lower() + head[1:]


STATES = {
    "pending": ("pending", "neutral"),
    "requeued": ("pending", "neutral"),
    "admitted": ("admitted", "info"),
    "running": ("running", "ok"),
    "evicted": ("evicted", "warn"),
    "finished": ("finished", "neutral"),
    "succeeded": ("finished", "neutral"),
    "failed": ("error", "err"),
    "cancelled": ("close", "neutral"),
    "held": ("hold", "neutral"),
    "misrouted": ("error", "err"),
}


def state_glyph(state: str) -> tuple[str, str]:
    """(icon, tone) of a state: glyph and word come before colour."""
    return STATES.get(state, ("pending", "neutral"))


def class_number(position: int) -> int:
    """1-6: which of the class colours a GPU class at ``position`` has; the sixth is a pattern."""
    return min(position, 5) + 1


def _seconds(value: Number | timedelta) -> int:
    total = value.total_seconds() if isinstance(value, timedelta) else float(value)
    return max(0, round(total))


def _pair(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first} {unit} {second} {smaller}" if second else f"{first} {unit}"
