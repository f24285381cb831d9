"""What waits, in words: how many members of how many GPUs, and where they have to be."""

from __future__ import annotations

from scheduling.engine.model import MILLI
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.wording import amount, gpus_in_words, plural


def gang(f: Facts) -> str:
    """How many GPUs it needs at once: "16 on 2 members" only for gangs."""
    need = amount(f.gpus * f.least)
    return f"{need} at once" if f.least * f.gpus > MILLI else need


def this(f: Facts) -> str:
    return "this gang" if f.least > 1 or f.gpus > MILLI else "this workload"


def parts(f: Facts) -> str:
    if f.roles:
        (many, gpus), *rest_of = f.roles
        rest = "".join(f" and {more} of {amount(each)}" for more, each in rest_of)
        return f" in {plural(many, 'part')} of {amount(gpus)}{rest}"
    return f" in {f.least} parts of {amount(f.gpus)}" if f.least > 1 else ""


def members(f: Facts) -> str:
    """All that have to start together, each with what it takes."""
    beside = f" with {f.beside}" if f.beside else ""
    (many, gpus), *rest_of = f.roles or ((f.least, f.gpus),)
    rest = "".join(f" and {more} of {gpus_in_words(each)}" for more, each in rest_of)
    return f"{plural(many, 'member')} of {gpus_in_words(gpus)}{beside}{rest}"


def together(f: Facts) -> str:
    """In which domains all of them, and every segment, have to be."""
    size, level = f.segment
    text = f" in one {f.wanted}" if f.wanted else ""
    return f"{text}, every {size} in one {level}" if size else text
