"""What may stand in a cell of the quota grid, and what the door says when it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from scheduling.models import MILLI
from scheduling.services.errors import ServiceError
from scheduling.services.queues.values import Field

_ZERO_OR_ALL = "Write 0 or more, or all for no limit."
MOST = 999_999
"""What the columns hold: weights have six digits before the point, milli-GPU would fit a little more."""

WORDS = {
    Field.NOMINAL: "nominal",
    Field.BORROWING_LIMIT: "borrowing limit",
    Field.LENDING_LIMIT: "lending limit",
    Field.WEIGHT: "weight",
    Field.BUDGET: "GPU-hours a month",
}

WHOLE = {"reason": "reason", "effective_from": "from", "effective_until": "until"}
"""Fields of an edit that people fill in; what else an edit carries has no name of theirs."""


@dataclass(frozen=True, slots=True)
class QuotaCell:
    """One figure of the grid: GPUs or GPU-hours (``None`` = unlimited, limits only), or the weight."""

    queue: str
    gpu_class: str
    field: Field
    value: Decimal | None


@dataclass(frozen=True, slots=True)
class EditFault:
    """One thing to put right. ``queue`` and ``gpu_class`` are None for the edit as a whole."""

    code: str
    field: str
    sentence: str
    remedy: str
    queue: str | None = None
    gpu_class: str | None = None
    parent: str | None = None
    """Of a sum: the queue whose children hold too much."""

    @property
    def where(self) -> str:
        """``alignment, a100-40gb, nominal``, or what of the edit as a whole."""
        whole = WHOLE.get(self.field, "these edits")
        word = WORDS[Field(self.field)] if self.queue else whole
        return ", ".join(part for part in (self.queue, self.gpu_class, word) if part)


class QuotaError(ServiceError):
    """Nothing was saved; ``faults`` says why, one line each, in the order of the grid."""

    def __init__(self, faults: Sequence[EditFault]) -> None:
        self.faults = tuple(faults)
        first = self.faults[0]
        sentence = "; ".join(f"{f.where}: {f.sentence}" for f in self.faults)
        super().__init__("quota_refused", sentence, first.remedy, field=first.field)


def figure(milli: int) -> str:
    """Milli-GPU as people write GPUs: ``44``, ``0.5``."""
    return (
        f"{Decimal(milli) / MILLI:f}".rstrip("0").rstrip(".")
        if milli % MILLI
        else (str(milli // MILLI))
    )


def cell_fault(cell: QuotaCell) -> EditFault | None:
    """What is wrong with the figure by itself."""
    said = _figure_fault(cell.field, cell.value)
    if said is None:
        return None
    code, sentence, remedy = said
    return EditFault(code, cell.field.value, sentence, remedy, cell.queue, cell.gpu_class)


def _figure_fault(field: Field, value: Decimal | None) -> tuple[str, str, str] | None:
    word = WORDS[field]
    if value is None:
        missing = "missing", f"{word} needs a number.", "Write 0 if there is nothing to give."
        return None if field.may_be_unlimited else missing
    if not value.is_finite():
        return "not_a_number", f"{value} is not a number.", "Write a figure such as 8 or 0.5."
    if value < 0:
        remedy = "Write 0 or more." if not field.may_be_unlimited else _ZERO_OR_ALL
        return "below_zero", f"{word} {value:g} is below zero.", remedy
    if value > MOST:
        return "too_large", f"{word} {value:g} is too large.", f"Write at most {MOST:,}."
    step = Decimal(1) if field is Field.BUDGET else Decimal("0.001")
    if value % step:
        unit = "one" if field is Field.BUDGET else "a thousandth"
        nearest = f"Write {value.quantize(step).normalize():f}."
        return "too_fine", f"{word} {value:g} is finer than {unit}.", nearest
    return None


def stored(field: Field, value: Decimal | None) -> int | Decimal | None:
    """A checked figure in the units of the database: milli-GPU, whole hours, or the weight as it is."""
    if value is None or field is Field.WEIGHT:
        return value
    return int(value * MILLI) if field.is_gpus else int(value)


def as_typed(field: Field, value: int | Decimal | None) -> Decimal | None:
    """The reverse of ``stored``."""
    if value is None:
        return None
    return Decimal(value) / MILLI if field.is_gpus else Decimal(value)
