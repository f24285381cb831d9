"""What the page of capacity shows: curves as small multiples, the answer in words, rows of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from portal.display.format import class_number, counted, duration, hmin, hmin_band, number
from portal.display.sentences import and_list
from portal.reports.capacity import Answer, CapacityReport
from portal.reports.forecast import Crossing
from portal.web.studies.forms import as_query
from portal.web.studies.what_if import wait_ticks, wait_x
from scheduling.services.studies.capacity.curves import Curve, NeededGpus, Rung

LEFT, RIGHT, TOP, BOTTOM = 48.0, 252.0, 16.0, 136.0
"""Of the axes in a small multiple of 264 by 176."""
LABEL_PX = 30.0
"""Between numbers below the axis, so that they do not meet."""
STATES = {
    "holds": ("ok", "finished", "holds"),
    "missed": ("err", "error", "SLO missed"),
    "never": ("err", "error", "SLO missed"),
    "no SLO set": ("neutral", "", "no SLO set"),
    "too few": ("neutral", "", "too few to say"),
    "no study": ("neutral", "", "no study"),
}


@dataclass(frozen=True, slots=True)
class AxisMark:
    """A number below the axis at x; ``bold`` are what there is and what is needed."""

    x: float
    text: str
    bold: bool


@dataclass(frozen=True, slots=True)
class Multiple:
    """One class's curve; lengths in units of the drawing."""

    answer: Answer
    colour: int
    bold: str
    rest: str
    label: str
    band: str
    line: str
    rings: Sequence[tuple[float, float]]
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[AxisMark]
    installed_x: float
    recorded_y: float | None
    needed_x: float | None
    slo_y: float | None
    slo_text: str
    slo_text_y: float
    below: str


@dataclass(frozen=True, slots=True)
class ClassAnswerRow:
    """One class in the table."""

    answer: Answer
    colour: int
    needed: str
    edges: str
    over: str
    passing: Crossing | None
    badge: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class NodesStep:
    """Nodes added to the chosen class."""

    rung: Rung
    what: str
    p90: str
    band: str
    passes: datetime | None
    is_needed: bool
    what_if: str


def multiples(report: CapacityReport) -> list[Multiple]:
    """Of each class that was replayed."""
    return [_multiple(one) for one in report.answers if one.curve is not None and one.curve.rungs]


def _multiple(one: Answer) -> Multiple:
    curve = one.curve
    assert curve is not None  # noqa: S101 - only of these
    ends = curve.rungs[0].gpus, curve.rungs[-1].gpus
    bold, rest = verdict(one)
    found = one.needed
    slo_y = None if one.slo_s is None else _y(one.slo_s)
    return Multiple(
        answer=one,
        colour=class_number(one.gpu_class.position),
        bold=bold,
        rest=rest,
        label=f"P90 wait of {one.gpu_class.name} against {one.unit}: {bold} {rest}",
        band=_band(curve.rungs, ends),
        line=_points([(_x(r.gpus, ends), _y(r.median_s)) for r in curve.rungs]),
        rings=[(_x(rung.gpus, ends), _y(rung.median_s)) for rung in curve.rungs],
        ticks=[(round(BOTTOM - at * (BOTTOM - TOP) / 100, 1), text) for at, text in wait_ticks()],
        marks=_marks(one, ends),
        installed_x=_x(curve.installed, ends),
        recorded_y=None if curve.recorded_p90_s is None else _y(curve.recorded_p90_s),
        needed_x=_x(found.gpus, ends) if found and found.gpus is not None else None,
        slo_y=slo_y,
        slo_text="" if one.slo_s is None else f"SLO {duration(one.slo_s)}",
        slo_text_y=0.0 if slo_y is None else max(TOP + 10, slo_y - 4),
        below=_below(one),
    )


def _below(one: Answer) -> str:
    """What stands on the axis of a curve."""
    curve = one.curve
    if curve is None:
        return one.unit
    what = f"{one.unit} of own quota" if curve.is_quota else one.unit
    if curve.step_gpus or curve.is_quota:
        return f"{what}, steps of {number(curve.step_gpus or curve.node_gpus)}"
    return f"{what}, nodes of {number(curve.node_gpus)}"


def _x(gpus: float, ends: tuple[float, float]) -> float:
    low, high = ends
    part = (gpus - low) / (high - low) if high > low else 0.5
    return round(LEFT + part * (RIGHT - LEFT), 1)


def _y(seconds: float) -> float:
    """Logarithmic, from a minute to a day."""
    return round(BOTTOM - wait_x(seconds) * (BOTTOM - TOP) / 100, 1)


def _band(rungs: Sequence[Rung], ends: tuple[float, float]) -> str:
    up = [(_x(rung.gpus, ends), _y(rung.high_s)) for rung in rungs]
    down = [(_x(rung.gpus, ends), _y(rung.low_s)) for rung in reversed(rungs)]
    return _points([*up, *down])


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in pairs)


def _marks(one: Answer, ends: tuple[float, float]) -> list[AxisMark]:
    """What there is and what is needed, then the ends where they have room."""
    found = one.needed
    needs = found.gpus if found else None
    wanted = [(one.installed, True), (needs, True), (ends[0], False), (ends[1], False)]
    marks: list[AxisMark] = []
    for gpus, bold in wanted:
        if gpus is None:
            continue
        x = _x(gpus, ends)
        if all(abs(x - mark.x) >= LABEL_PX for mark in marks):
            marks.append(AxisMark(x, number(gpus), bold))
    return marks


def verdict(one: Answer) -> tuple[str, str]:
    """What the curve says of the SLO in one short sentence, and beside it what was replayed."""
    curve, found = one.curve, one.needed
    if curve is None or not curve.rungs:
        return "No study yet.", ""
    if not curve.is_told:
        return "Too few to say.", (
            f"{counted(curve.replays, 'replay')} of {counted(curve.workloads, 'workload')}."
        )
    is_so = (
        f"Replayed, P90 is {hmin(curve.as_it_is.median_s)} on {number(curve.installed)} {one.unit}."
    )
    if one.slo_s is None:
        return "No SLO set.", is_so
    most = curve.rungs[-1]
    if found is None or found.gpus is None:
        return f"Not even {number(most.gpus)} {one.unit} hold it.", is_so
    return _room(one, found.gpus), f"{is_so}{_uneven(one)}"


def _room(one: Answer, needs: float) -> str:
    curve = one.curve
    assert curve is not None  # noqa: S101 - it was told
    over = curve.installed - needs
    by_nodes = curve.node_gpus and not curve.step_gpus and not curve.is_quota
    nodes = f" ({counted(abs(over) / curve.node_gpus, 'node')})" if by_nodes else ""
    if one.state == "missed" and over < 0:
        return f"{number(-over)} {one.unit}{nodes} short."
    if over > 0:
        least = "At least " if needs == curve.rungs[0].gpus else ""
        return f"{least}{number(over)} {one.unit} more than it needs."
    is_fewest = needs == curve.rungs[0].gpus
    return (
        "Holds; fewer were not tried."
        if is_fewest
        else ("Holds, no node to spare." if by_nodes else "Holds, nothing to spare.")
    )


def _uneven(one: Answer) -> str:
    found = one.needed
    return " Uneven: more were tried and do not hold it." if found and found.is_uneven else ""


def rows(report: CapacityReport) -> list[ClassAnswerRow]:
    return [
        ClassAnswerRow(
            answer=one,
            colour=class_number(one.gpu_class.position),
            needed=_needed(one),
            edges=_edges(one),
            over=_over(one),
            passing=one.passes(one.installed),
            badge=STATES[one.state],
        )
        for one in report.answers
    ]


def _needed(one: Answer) -> str:
    """With "≤" where the fewest that were tried hold it, and "> most" where none do."""
    found, curve = one.needed, one.curve
    if found is None or curve is None:
        return "–"
    return _bounded(found.gpus, curve.rungs)


def _bounded(gpus: float | None, rungs: Sequence[Rung]) -> str:
    if gpus is None:
        return f"> {number(rungs[-1].gpus)}"
    return f"≤ {number(gpus)}" if gpus == rungs[0].gpus else number(gpus)


def _edges(one: Answer) -> str:
    found, curve = one.needed, one.curve
    if found is None or curve is None:
        return "–"
    low, high = (_bounded(gpus, curve.rungs) for gpus in (found.low, found.high))
    return low if low == high else f"{low} – {high}"


def _over(one: Answer) -> str:
    if one.over is not None:
        return f"{one.over:+,.0f}".replace("-", "−") if one.over else "0"
    if one.state == "never" and one.curve is not None:
        more = one.curve.rungs[-1].gpus - one.curve.installed
        return f"< −{number(more)}" if more else "short"
    return "–"


def steps(one: Answer | None) -> list[NodesStep]:
    """The class as it is and with nodes added, as far as they were replayed."""
    if one is None or one.curve is None or not one.curve.is_told:
        return []
    return [_step(one, rung) for rung in one.curve.rungs if rung.nodes >= 0]


def _step(one: Answer, rung: Rung) -> NodesStep:
    found, at = one.needed, one.passes(rung.gpus)
    return NodesStep(
        rung=rung,
        what=_what(one, rung),
        p90=hmin(rung.median_s),
        band=hmin_band(rung.low_s, rung.high_s),
        passes=at.middle if at else None,
        is_needed=found is not None and found.gpus == rung.gpus,
        what_if=as_query(_changes(one, rung)) if rung.nodes else "",
    )


def _what(one: Answer, rung: Rung) -> str:
    curve = one.curve
    if not rung.nodes or curve is None:
        return "as it is"
    if curve.step_gpus or curve.is_quota:
        return f"+{number(rung.gpus - curve.installed)} {one.unit}"
    return f"+{counted(rung.nodes, 'node')}"


def _changes(one: Answer, rung: Rung) -> list[dict[str, object]]:
    """The same as a what-if: a quota, nodes, and a smaller node for what is less than one."""
    curve, name = one.curve, one.gpu_class.name
    assert curve is not None  # noqa: S101 - it was replayed
    if one.queue is not None:
        return [
            {"kind": "quota", "queue": one.queue.name, "gpu_class": name, "nominal_gpus": rung.gpus}
        ]
    if not curve.step_gpus:
        return [{"kind": "capacity", "gpu_class": name, "nodes": rung.nodes}]
    nodes, rest = divmod(rung.gpus - curve.installed, curve.node_gpus)
    whole = [{"kind": "capacity", "gpu_class": name, "nodes": int(nodes)}] if nodes else []
    part = {"kind": "capacity", "gpu_class": name, "nodes": 1, "gpus_per_node": rest}
    return [*whole, part] if rest else [*whole]


def finding(report: CapacityReport, one: Answer | None) -> tuple[str, str]:
    """The answer about ``one``, and what is said beside it."""
    if one is None or one.curve is None or not one.curve.rungs:
        return "No study of capacity is made yet.", "One is made each night; you can begin one now."
    if one.queue is not None:
        return _answer(one), _others(report, one)
    return _answer(one), " ".join(filter(None, (_demand(report, one), _others(report, one))))


def _answer(one: Answer) -> str:
    name, curve, found = one.gpu_class.name, one.curve, one.needed
    assert curve is not None  # noqa: S101 - asked before
    has = f"{number(curve.installed)} {one.unit}"
    if one.queue is not None:
        return _of_quota(one, curve, found)
    if not curve.is_told:
        return f"Of {name} too little was replayed to say how many {one.unit} it needs."
    if one.slo_s is None or found is None:
        is_so = duration(curve.as_it_is.median_s)
        return f"{name} has no SLO set; replayed on its {has}, the P90 wait is {is_so}."
    slo = duration(one.slo_s)
    if found.gpus is None:
        most = number(curve.rungs[-1].gpus)
        tried = f"No number up to {most} {one.unit} that was tried"
        return f"{tried} holds the SLO of {slo} of {name}; it has {has}."
    fewest = ", the fewest tried" if found.gpus == curve.rungs[0].gpus else ""
    needs = f"{name} needs {number(found.gpus)} {one.unit}{fewest}"
    return f"To hold its SLO of {slo}, {needs}; it has {number(curve.installed)}."


def _of_quota(one: Answer, curve: Curve, found: NeededGpus | None) -> str:
    """Of a queue alone on its own quota."""
    assert one.queue is not None  # noqa: S101 - asked before
    name, has = one.queue.name, f"{number(curve.installed)} {one.unit} of {one.gpu_class.name}"
    if not curve.is_told:
        return f"Of {name} too little was replayed to say how much quota it needs."
    is_so = duration(curve.as_it_is.median_s)
    if one.slo_s is None or found is None:
        return (
            f"Alone on its own {has}, the P90 wait of {name} is {is_so}; the class has no SLO set."
        )
    slo = duration(one.slo_s)
    if found.gpus is None:
        most = number(curve.rungs[-1].gpus)
        return f"No quota up to {most} that was tried holds the SLO of {slo} for {name} alone; it has {has}."
    fewest = ", the fewest tried" if found.gpus == curve.rungs[0].gpus else ""
    return (
        f"To hold the SLO of {slo} without borrowing, {name} needs {number(found.gpus)}{fewest};"
        f" its own quota is {has}."
    )


def _demand(report: CapacityReport, one: Answer) -> str:
    ahead, at = one.ahead, one.passes(one.installed)
    if ahead is None or at is None or ahead.hours_above is None or ahead.row is None:
        return "No forecast of its demand is made yet."
    above = f"Its demand is above what is ready in {ahead.hours_above} of the next 168 hours"
    mean = f"{above}; its weekly mean"
    if at.middle is None:
        return f"{mean} passes what is installed in none of the next 26 weeks."
    if at.middle <= ahead.row.made_at:
        return f"{mean} is above what is installed already."
    day = at.middle.astimezone(report.forecast.filters.tz)
    return f"{mean} passes what is installed on {day.day} {day:%b %Y}."


def _others(report: CapacityReport, one: Answer) -> str:
    others = [other for other in report.answers if other is not one and other.slo_s is not None]
    short = [other.gpu_class.name for other in others if other.state in ("missed", "never")]
    if short:
        return (
            f"{and_list(short)} {'misses its SLO' if len(short) == 1 else 'miss theirs'} as well."
        )
    holding = [other for other in others if other.state == "holds"]
    if not holding or len(holding) < len(others):
        return ""
    return (
        "The other classes with an SLO hold theirs." if len(others) > 1 else "The other one holds."
    )


def address(chosen: str, queue: str = "") -> str:
    """What stands in the address of the page."""
    fields = {"class": chosen, "queue": queue}
    return urlencode({name: value for name, value in fields.items() if value})
