"""What a person typed into the grid and the form beside it, read against what the page had shown.

Only cells that differ from what was shown count as edits, so a change that is planned for later is not
flattened by cells nobody touched. What was shown is read back from the history: quotas are never
overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError

from portal.boundary.reading import instant
from portal.display.format import zone
from portal.web.quotas.again import Span, repeated
from scheduling.models import GpuClass, Queue
from scheduling.services.queues.faults import as_typed, stored
from scheduling.services.queues.save import EditFault, Field, Grid, GridRow, QuotaCell, Values

UNLIMITED = frozenset({"", "all", "unlimited", "none", "no limit", "∞"})
FIGURE = re.compile(r"[-+]?\d{1,12}(\.\d{1,9})?", re.ASCII)


def cell_name(queue: Queue, gpu_class: GpuClass, field: Field) -> str:
    """The name of the input of one cell."""
    return f"cell-{queue.pk}-{gpu_class.pk}-{field.value}"


def figure_text(values: Values, field: Field) -> str:
    """A figure as it stands in its input: GPUs without thousands apart, ``all`` for unlimited."""
    value = as_typed(field, values.get(field))
    if value is None:
        return "all"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(slots=True)
class PostedEdit:
    """A posted edit: ``texts`` by input name for every edited cell, ``cells`` what they say."""

    reason: str = ""
    effective_from: str = ""
    effective_until: str = ""
    start: datetime | None = None
    end: datetime | None = None
    texts: dict[str, str] = field(default_factory=dict)
    cells: list[QuotaCell] = field(default_factory=list)
    repeat: str = ""
    times: str = ""
    again: list[Span] = field(default_factory=list)
    """When it holds once more; empty where it does not repeat."""
    faults: list[EditFault] = field(default_factory=list)


def read(post: Mapping[str, str], base: Grid, zone_name: str) -> PostedEdit:
    """The edit in ``post`` against ``base``, the grid as it was shown; times are local to the zone."""
    typed = PostedEdit(
        reason=post.get("reason", ""),
        effective_from=post.get("effective_from", "").strip(),
        effective_until=post.get("effective_until", "").strip(),
        repeat=post.get("repeat", ""),
        times=post.get("times", "").strip(),
    )
    for row in base.rows[1:]:
        for gpu_class in base.gpu_classes:
            for each in Field:
                text = post.get(cell_name(row.queue, gpu_class, each))
                if text is not None:
                    _read_cell(typed, text, row, gpu_class, each)
    typed.start = _instant(typed, "effective_from", zone(zone_name))
    typed.end = _instant(typed, "effective_until", zone(zone_name))
    if typed.repeat and not typed.faults:
        span = (typed.start, typed.end)
        found = repeated(typed.repeat, typed.times, span, zone(zone_name))
        if isinstance(found, EditFault):
            typed.faults.append(found)
        else:
            typed.again = found
    return typed


def _read_cell(
    typed: PostedEdit, text: str, row: GridRow, gpu_class: GpuClass, each: Field
) -> None:
    shown_values, name = row.values[gpu_class.name], cell_name(row.queue, gpu_class, each)
    if text.strip() == figure_text(shown_values, each):
        return
    value = parse_figure(text, each)
    if isinstance(value, EditFault):
        typed.texts[name] = text
        typed.faults.append(replace(value, queue=row.queue.name, gpu_class=gpu_class.name))
    elif stored(each, value) != shown_values.get(each):
        typed.texts[name] = text
        typed.cells.append(QuotaCell(row.queue.name, gpu_class.name, each, value))


def parse_figure(text: str, field: Field) -> Decimal | EditFault | None:
    """What a cell's text means: a figure, None for unlimited, or the fault without its place."""
    plain = text.strip().lower().replace("−", "-")
    if plain in UNLIMITED and (field.may_be_unlimited or plain == ""):
        return None
    if FIGURE.fullmatch(plain):
        return Decimal(plain)
    said = text.strip()[:20]
    remedy = "Write a figure such as 8 or 0.5" + (
        ", or all for no limit." if field.may_be_unlimited else "."
    )
    return EditFault("not_a_number", field.value, f"“{said}” is not a figure.", remedy)


def _instant(typed: PostedEdit, name: str, local: ZoneInfo) -> datetime | None:
    text = getattr(typed, name)
    if not text or text.lower() == "now":
        return None
    try:
        return instant(text, local)
    except ValidationError:
        typed.faults.append(
            EditFault(
                "not_a_time",
                name,
                f"“{text[:30]}” is not a time.",
                "Write one such as 2026-12-31 18:00.",
            )
        )
        return None
