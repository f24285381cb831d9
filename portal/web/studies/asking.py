"""A new experiment as it is put together: one form that holds period, variants and what is added next."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.http import QueryDict

from portal.boundary.reading import whole_or
from portal.display.format import duration, zone
from portal.web.studies import forms
from portal.web.studies.what_if import WORDS
from scheduling.models import Cluster, Study
from scheduling.services.errors import ServiceError
from scheduling.services.studies.experiments import periods, traces
from scheduling.services.studies.experiments import variants as changing
from scheduling.services.studies.experiments.asking import LETTERS, Question
from scheduling.services.studies.experiments.past import TraceQuestion
from scheduling.services.studies.experiments.results import resolution_s
from scheduling.services.studies.experiments.variants import kinds_changed

DAYS, WARM_UP_DAYS, REPLAYS = 7, 3, 10
PARAMETER = "variant"
Json = dict[str, Any]
PAST, KEPT, FILE = "past", "kept", "file"


@dataclass(frozen=True, slots=True)
class FromTrace:
    """Whose work is lived: ``of`` is "past", "kept" or "file"; the days are those of a trace, empty for as
    many as may be lived. A file's ``content`` is base64."""

    of: str = PAST
    name: str = ""
    first: str = ""
    last: str = ""
    file_name: str = ""
    content: str = ""

    @property
    def is_trace(self) -> bool:
        return self.of in (KEPT, FILE)

    def trace(self) -> TraceQuestion | None:
        """Raises ServiceError where none is chosen, or the file did not come whole."""
        if self.of == KEPT and self.name:
            return TraceQuestion(self.name)
        if self.of == FILE and self.file_name:
            try:
                return TraceQuestion(self.file_name, b64decode(self.content, validate=True))
            except ValueError:
                raise _no_trace("The file did not come whole.") from None
        if self.is_trace:
            raise _no_trace("No trace is chosen.")
        return None


def _no_trace(sentence: str) -> ServiceError:
    return ServiceError("no_trace", sentence, "Choose it again.", field="trace")


@dataclass(frozen=True, slots=True)
class ComposedForm:
    """The form as it was typed."""

    name: str
    first: str
    last: str
    warm_up_days: str
    replays: str
    once: bool
    variants: tuple[Json, ...]
    work: FromTrace = FromTrace()


def empty(cluster: Cluster) -> ComposedForm:
    """The last week that is over, with as much warm-up as the ledger has, up to three days."""
    tz = zone(cluster.display_time_zone)
    last = cluster.now().astimezone(tz).date() - timedelta(days=1)
    known = periods.known_since(cluster)
    first = last - timedelta(days=DAYS - 1)
    warm_up = WARM_UP_DAYS
    if known is not None:
        begins = known.astimezone(tz).date() + timedelta(days=1)
        first = min(last, max(first, begins))
        warm_up = max(0, min(WARM_UP_DAYS, (first - begins).days))
    return ComposedForm("", str(first), str(last), str(warm_up), str(REPLAYS), False, ())


def again(study: Study) -> ComposedForm:
    """What a clone begins with."""
    tz = zone(study.cluster.display_time_zone)
    last = (study.period[1] - timedelta(seconds=1)).astimezone(tz).date()
    variants = [
        {"name": one.name, "changes": one.changes}
        for one in study.variants.all()
        if one.letter != LETTERS[0]
    ]
    return ComposedForm(
        study.name[:113] + ", again",
        str(study.period[0].astimezone(tz).date()),
        str(last),
        f"{study.warm_up_s / 86400:g}",
        str(study.replays),
        not study.is_drawn,
        tuple(variants),
        _same_work(study),
    )


def _same_work(study: Study) -> FromTrace:
    """A file that was sent is kept no longer than its work: it has to be chosen again."""
    source = study.basis.get("source", {})
    if source.get("kind") != "trace":
        return FromTrace()
    tz = zone(study.cluster.display_time_zone)
    first = study.period[0].astimezone(tz).date()
    last = (study.period[1] - timedelta(seconds=1)).astimezone(tz).date()
    name = str(source.get("name", ""))
    if name in traces.trace_names():
        return FromTrace(KEPT, name, str(first), str(last))
    return FromTrace(FILE, "", str(first), str(last))


def read_form(query: QueryDict) -> ComposedForm:
    """Raises ChangeError for a variant that is no JSON object."""
    variants = forms.objects_in(query.getlist(PARAMETER), "variants")
    return ComposedForm(
        query.get("name", ""),
        query.get("first", ""),
        query.get("last", ""),
        query.get("warm_up_days", ""),
        query.get("replays", ""),
        query.get("draws") == "once",
        tuple(variants),
        FromTrace(
            query.get("of", PAST),
            query.get("kept", ""),
            query.get("trace_first", "").strip(),
            query.get("trace_last", "").strip(),
            query.get("file_name", ""),
            query.get("file_content", ""),
        ),
    )


def with_next(form: ComposedForm, query: QueryDict) -> tuple[Json, ...]:
    """The variants after the button that was pressed: one added, changed further, or removed."""
    variants = list(form.variants)
    gone = query.get("remove", "")
    if gone:
        place = whole_or(gone, -1)
        return tuple(one for number, one in enumerate(variants) if number != place)
    kind = query.get("add", "")
    change = forms.added(_prefixed(query, kind))
    at = whole_or(query.get("into", ""), -1)
    if 0 <= at < len(variants):
        before = variants[at]
        variants[at] = {**before, "changes": [*before.get("changes", ()), change]}
        return tuple(variants)
    name = query.get("variant_name", "").strip() or differs({"changes": [change]})
    return (*variants, {"name": name[:120], "changes": [change]})


def _prefixed(query: QueryDict, kind: str) -> QueryDict:
    """Fields of the small form of ``kind``, whose names in the large one begin with it."""
    found = QueryDict(mutable=True)
    found["add"] = kind
    for name in forms.FIELDS.get(kind, ()):
        found[name] = query.get(f"{kind}-{name}", "")
    return found


def question_of(cluster: Cluster, form: ComposedForm) -> Question:
    """Raises ServiceError at a field that is no date or number."""
    begin, end = _judged(form, zone(cluster.display_time_zone))
    return Question(
        name=form.name,
        begin=begin,
        end=end,
        trace=form.work.trace(),
        warm_up=timedelta(days=_whole(form.warm_up_days, "warm_up_days")),
        replays=1 if form.once else _whole(form.replays, "replays"),
        is_drawn=not form.once,
        variants=form.variants,
    )


def _judged(form: ComposedForm, tz: ZoneInfo) -> tuple[datetime | None, datetime | None]:
    days = (form.work.first, form.work.last) if form.work.is_trace else (form.first, form.last)
    if form.work.is_trace and not any(days):
        return None, None
    first, last = (_day(text, name) for text, name in zip(days, ("first", "last"), strict=True))
    return _midnight(first, tz), _midnight(last + timedelta(days=1), tz)


def _day(text: str, field: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise ServiceError(
            "no_date", "That is no date.", "Write it as 2026-11-19.", field=field
        ) from None
    if not 1971 <= found.year <= 2999:
        raise ServiceError(
            "no_date", "That is no date of our time.", "Choose a day of the ledger.", field=field
        )
    return found


def _whole(text: str, field: str) -> int:
    found = whole_or(text, -1)
    if found < 0:
        raise ServiceError(
            "no_number", "That is no whole number.", "Write digits, as 7.", field=field
        )
    return found


def _midnight(day: date, tz: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), tzinfo=tz)


def differs(variant: Mapping[str, Any]) -> str:
    """What it changes, in words; of what cannot be read its fault."""
    try:
        return changing.differs(variant.get("changes", ()))
    except ServiceError as error:
        return str(error)


@dataclass(frozen=True, slots=True)
class VariantEntry:
    letter: str
    name: str
    words: str
    differs: str
    text: str
    fault: str


def rows(form: ComposedForm, fault: ServiceError | None) -> list[VariantEntry]:
    """Those beside A."""
    found = []
    for number, one in enumerate(form.variants):
        mine = fault is not None and f"{fault.field}.".startswith(f"variants.{number}.")
        words = ", ".join(WORDS[kind] for kind in kinds_changed(_objects(one.get("changes"))))
        letter = LETTERS[number + 1] if number + 1 < len(LETTERS) else "?"
        found.append(
            VariantEntry(
                letter,
                str(one.get("name", "")),
                words,
                differs(one),
                forms.as_text(one),
                str(fault) if mine else "",
            )
        )
    return found


def _objects(changes: Any) -> Sequence[Mapping[str, Any]]:
    return (
        [one for one in changes or () if isinstance(one, Mapping)]
        if isinstance(changes, list)
        else []
    )


@dataclass(frozen=True, slots=True)
class PeriodBar:
    """Warm-up and judged period on the axis of all that the ledger has, per cent."""

    warm_x: float
    warm_width: float
    judged_x: float
    judged_width: float
    ticks: tuple[tuple[float, datetime], ...]


def drawing(cluster: Cluster, question: Question | None) -> PeriodBar | None:
    """None where there is no such period."""
    known, now = periods.known_since(cluster), cluster.now()
    if question is None or known is None or question.trace is not None:
        return None
    begin, end = question.begin, question.end
    if begin is None or end is None or not begin < end:
        return None
    start = min(known, begin - question.warm_up)
    whole = (max(now, end) - start) / timedelta(days=1)

    def x(at: datetime) -> float:
        return round(100 * ((at - start) / timedelta(days=1)) / whole, 2)

    warm = begin - question.warm_up
    return PeriodBar(
        x(warm),
        round(x(begin) - x(warm), 2),
        x(begin),
        round(x(end) - x(begin), 2),
        tuple((x(at), at) for at in (warm, begin, end)),
    )


def resolution(cluster: Cluster, form: ComposedForm) -> str:
    """Which difference so many replays can show at all."""
    count = 1 if form.once else whole_or(form.replays, 0)
    if count < 5:
        return "Fewer than 5 replays give figures and no verdict."
    found = resolution_s(cluster.pk, count)
    if found is None:
        return "How small a difference shows is known once an experiment with 5 replays has been lived here."
    few = resolution_s(cluster.pk, 5)
    more = f"; with 5, about {duration(few)}" if few is not None and count != 5 else ""
    least = f"With {count}, a difference of about {duration(found)} in the average wait"
    return f"{least} is more than noise{more}."
