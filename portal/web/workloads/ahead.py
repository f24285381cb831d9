"""What would become of a workload, class by class, as the submit page tells it before the click.

Verdicts, shares and sentences are those of the engine's plan with the workload in it; this puts them
into rows for one reader. All figures are milli-GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from portal.accounts.models import User
from portal.display.entitlement import Axis, Bar, axis, bar
from portal.display.format import duration, gpus, money, number, reason_inside
from portal.plans.asking import ask_run_times, ask_starts
from portal.plans.starts import DRAFT, NOTHING_ASKED, PredictedStarts, draft_question
from portal.selectors.ends import end_after
from portal.selectors.overview import figures_of
from portal.selectors.run_times import expected_words, short_limit
from portal.teams import submission
from portal.teams.access import visible_workloads
from scheduling.models import Cluster, GpuClass, Reason, Workload, headline
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking
from scheduling.services.explain.asking import Answer, DraftWork
from scheduling.services.run_times import ExpectedRunTime
from scheduling.services.starts.tell import NO_WORD, PredictedStart
from scheduling.services.words.sentences import Reader, name_of, tell
from scheduling.services.workloads import turns

NEVER = (datetime.max.replace(tzinfo=UTC),) * 2
NAMED = 3
"""Of those who go before, so many are named; the others are counted."""
RUN_TIME_S = 0.3
"""So long the page waits for how long it would run, after the plans; whoever types on has it with the
next."""


@dataclass(frozen=True, slots=True)
class StartVerdict:
    """``head`` stands in the badge, ``text`` below it; ``until`` is when the engine expects it to start."""

    tone: str
    icon: str
    head: str
    text: str
    until: datetime | None = None
    likely: PredictedStart = NO_WORD
    """P50 and P90 of its start, where it waits and a worker has said so."""

    @property
    def start(self) -> tuple[datetime, datetime] | None:
        return self.likely.band


@dataclass(frozen=True, slots=True)
class ClassOutlook:
    """A class, its place in the order of preference (0: not chosen), and what would happen there."""

    gpu_class: GpuClass
    choice: int
    verdict: StartVerdict
    bar: Bar | None
    cost: str
    cost_note: str
    behind: Sequence[Workload] = ()
    behind_others: int = 0
    leaving: Sequence[str] = ()
    run_time: tuple[str, str] | None = None
    """How long it would run there, and what that rests on."""
    short_limit: str = ""
    """A warning that its limit ends it before it is done."""
    end: tuple[datetime, datetime] | None = None
    """P50 and P90 of when it would have ended there; None where its start or its pace there is not known."""

    begin: tuple[datetime, datetime] | None = None
    """P50 and P90 of its start there, now where it starts at once; None where no time is worth telling."""
    band: tuple[float, float] | None = None
    """Where that lies on the axis of all rows: from, and how wide, per cent."""

    @property
    def starts(self) -> bool:
        return self.verdict.tone == "ok"

    @property
    def choice_text(self) -> str:
        names = {0: "not chosen", 1: "1st choice", 2: "2nd choice", 3: "3rd choice"}
        return names.get(self.choice, f"{self.choice}th choice")


@dataclass(frozen=True, slots=True)
class StartOutlook:
    """The answer to one question. ``fault`` says why there is none."""

    size: str = ""
    lead: StartVerdict | None = None
    lead_class: str = ""
    most_cost: str = ""
    rows: Sequence[ClassOutlook] = ()
    axis: Axis | None = None
    at: datetime | None = None
    until: datetime | None = None
    """End of the axis on which the rows' starts lie, which begins now; None where none of them waits."""
    fault: str = ""
    first: FirstEnd | None = None
    awaits: str = ""
    """What a worker has not said yet; empty where nothing is to come."""


@dataclass(frozen=True, slots=True)
class FirstEnd:
    """Of the classes that it accepts the one where it would end first, and the one where it would start
    first, where that is another."""

    ends: ClassOutlook
    starts: ClassOutlook | None


def outlook(
    draft: DraftWork,
    manifest: Mapping[str, Any],
    classes: Sequence[GpuClass],
    user: User,
    reader: Reader,
    unread: Collection[str] = (),
) -> StartOutlook:
    """Each of ``classes``, those that it accepts first in their order; ``unread`` are fields that say nothing
    that can be read yet. ``asked`` is what ``manifest`` says."""
    names = [c.name for c in classes]
    question = asking.run_time_question(draft, names)
    # A worker reads the model while this process plans.
    runs = ask_run_times(draft.cluster, question, wait_s=0.0)
    try:
        answers = asking.ask(draft, names, asker=user.get_username())
    except ServiceError as fault:
        return StartOutlook(size=size_of(draft), fault=str(fault))
    whole, *single = answers
    telling = _Telling(draft, user, reader, unread)
    starts = _starts(telling, manifest, answers)
    if runs is None:
        runs = ask_run_times(draft.cluster, question, wait_s=RUN_TIME_S)
    telling = replace(telling, run_times=runs or {}, starts=starts.found)
    on = _axis(answers, draft)
    rank = {name: i + 1 for i, name in enumerate(draft.observed.gpu_classes)}
    rows = [
        telling.row(gpu_class, rank.get(gpu_class.name, 0), answer, on)
        for gpu_class, answer in zip(classes, single, strict=True)
    ]
    rows, until = _on_one_axis(rows, draft.cluster.now())
    lead, name = _lead(telling.verdict(whole), whole.decision.gpu_class, rows)
    best = next((c for c in classes if c.name == name), None)
    return StartOutlook(
        size=size_of(draft),
        lead=lead,
        lead_class="" if best is None or whole.never else best.name,
        most_cost="" if best is None or whole.never else telling.most_cost(best),
        rows=sorted(rows, key=lambda row: row.choice or len(rows) + 1),
        axis=on,
        at=draft.cluster.now(),
        until=until,
        first=_first_end(rows),
        awaits=_awaits(start=starts.is_open, run_time=runs is None),
    )


def _starts(
    telling: _Telling, manifest: Mapping[str, Any], answers: Sequence[Answer]
) -> PredictedStarts:
    """Of those that wait, as a worker said of late; else it is asked. All classes together are asked about
    only where it names none: else it starts by the first of them (``_lead``)."""
    draft = telling.draft
    names = [
        one.gpu_class
        for one in answers
        if one.waits and telling.may_run(one) and (one.gpu_class or not draft.observed.gpu_classes)
    ]
    if not names:
        return NOTHING_ASKED
    question = draft_question(telling.user, manifest, names)
    return ask_starts(draft.cluster, DRAFT, question)


def _awaits(*, start: bool, run_time: bool) -> str:
    parts = ["When it would start"] * start + ["How long it would run"] * run_time
    return " and ".join(parts[:1] + [part[0].lower() + part[1:] for part in parts[1:]])


NARROWEST = 1.0
"""Per cent of the axis, for a band that would not be seen."""


def _on_one_axis(
    rows: Sequence[ClassOutlook], now: datetime
) -> tuple[list[ClassOutlook], datetime | None]:
    """``rows`` with their starts on one axis, and where it ends."""
    ahead = [row.begin[1] for row in rows if row.begin and row.begin[1] > now]
    if not ahead:
        return list(rows), None
    until = max(ahead)

    def place(at: datetime) -> float:
        return round(max(0.0, min(100.0, 100 * ((at - now) / (until - now)))), 2)

    def band(begin: tuple[datetime, datetime]) -> tuple[float, float]:
        wide = max(NARROWEST, place(begin[1]) - place(begin[0]))
        return min(place(begin[0]), 100 - wide), wide

    return [replace(row, band=band(row.begin)) if row.begin else row for row in rows], until


def _lead(
    whole: StartVerdict, gpu_class: str | None, rows: Sequence[ClassOutlook]
) -> tuple[StartVerdict, str | None]:
    """What is said of the whole wish, and its class. Where it waits, whoever accepts several classes starts
    no later than on the first of them."""
    waits = [row for row in rows if row.choice and row.verdict.start and not row.starts]
    if whole.tone in ("ok", "err") or not waits:
        return whole, gpu_class
    first = min(waits, key=lambda row: (row.verdict.start or NEVER, row.choice))
    return first.verdict, first.gpu_class.name


def _first_end(rows: Sequence[ClassOutlook]) -> FirstEnd | None:
    """None unless at least two that it accepts can be compared."""
    known = [row for row in rows if row.choice and row.end]
    if len(known) < 2:
        return None
    ends = min(known, key=lambda row: (row.end or NEVER, row.choice))
    starts = min(known, key=lambda row: (row.begin or NEVER, row.choice))
    earlier = (starts.begin or NEVER) < (ends.begin or NEVER)
    return FirstEnd(ends, starts if earlier else None)


def size_of(draft: DraftWork) -> str:
    """'8 to 16 GPUs in 2 to 4 pods'."""
    one = draft.observed
    low, high = one.gpus * one.min_members, one.gpus * one.max_members
    amount = gpus(low) if low == high else f"{gpus(low)} to {gpus(high)}"
    most = sum(shape.pods for shape in one.shapes) or one.max_members
    least = most - sum(shape.extra for shape in one.shapes) if one.shapes else one.min_members
    pods = number(least) if least == most else f"{number(least)} to {number(most)}"
    return f"{amount} {'GPU' if amount == '1' else 'GPUs'} in {pods} {'pod' if pods == '1' else 'pods'}"


@dataclass(frozen=True)
class _Telling:
    """Answers about one workload before one reader."""

    draft: DraftWork
    user: User
    reader: Reader
    unread: Collection[str]
    run_times: Mapping[str, ExpectedRunTime] = field(default_factory=dict)
    starts: Mapping[str, PredictedStart] = field(default_factory=dict)
    """When it would start, by GPU class; empty: on all that it accepts."""
    barred: Mapping[str, str] = field(init=False)
    refused: str = field(init=False)
    """Why the judge has none of it run, on whatever class."""
    later: tuple[Reason, str] | None = field(init=False)
    """What it says itself to wait for."""

    def __post_init__(self) -> None:
        refused, barred = submission.refusals_of(self.draft, self.unread)
        object.__setattr__(self, "barred", barred)
        object.__setattr__(self, "refused", refused)
        later = turns.kept_back(self.draft.cluster, self.draft.observed)
        object.__setattr__(self, "later", later)

    @property
    def cluster(self) -> Cluster:
        return self.draft.cluster

    def may_run(self, answer: Answer) -> bool:
        """Whether only time keeps it from starting."""
        return not (self.refused or self.later or answer.gpu_class in self.barred)

    def row(
        self, gpu_class: GpuClass, choice: int, answer: Answer, on: Axis | None
    ) -> ClassOutlook:
        verdict = self.verdict(answer)
        if said := self.barred.get(gpu_class.name):
            verdict = StartVerdict("err", "error", "Not allowed", said)
        runs = verdict.tone != "err"
        behind = self._behind(answer) if runs else []
        one = self.run_times.get(gpu_class.name) if runs else None
        begin = self._begin(answer) if runs else None
        return ClassOutlook(
            gpu_class=gpu_class,
            choice=choice,
            verdict=verdict,
            bar=self._bar(answer, on),
            cost=self._cost_words(gpu_class, answer, one) if runs else "–",
            cost_note=self._cost_note(gpu_class, answer, one) if runs else "",
            behind=behind,
            behind_others=len(answer.ahead) - len(behind) if runs else 0,
            leaving=self._leaving(answer) if runs else (),
            run_time=expected_words(one, self.user_name, gpu_class.name) if one else None,
            short_limit=short_limit(one, self.draft.observed.run_time_limit_s) if one else "",
            begin=begin,
            end=end_after(begin, one.p50_s, one.p90_s) if begin and one and one.compares else None,
        )

    @property
    def user_name(self) -> str:
        return self.draft.observed.user

    def _begin(self, answer: Answer) -> tuple[datetime, datetime] | None:
        if self.later is not None:
            return None
        now = self.cluster.now()
        return (now, now) if answer.starts else self._likely(answer).band

    def _likely(self, answer: Answer) -> PredictedStart:
        return self.starts.get(answer.gpu_class, NO_WORD)

    def verdict(self, answer: Answer) -> StartVerdict:
        if self.refused:
            return StartVerdict("err", "error", "Not allowed", self.refused)
        decision, text = answer.decision, self._text(answer)
        if answer.never:
            return StartVerdict("err", "error", "Never fits", text)
        if self.later is not None:
            reason, said = self.later
            return StartVerdict("warn", "clock", headline(reason), said)
        if answer.starts:
            size, most = self._size(answer), self._most
            part = f" with {gpus(size)} of {gpus(most)} GPUs" if size < most else ""
            return StartVerdict("ok", "finished", f"Starts now{part}", text)
        if decision.reason == "awaits_victims":
            head = "Starts once others have left" if answer.leaving else "Starts as GPUs come free"
            return StartVerdict("info", "clock", head, text, decision.until, self._likely(answer))
        place = f", place {decision.position} in its queue" if decision.position else ""
        head = f"Waits{place}: {reason_inside(decision.reason)}"
        return StartVerdict("warn", "clock", head, text, decision.until, self._likely(answer))

    def _text(self, answer: Answer) -> str:
        return tell(self.draft.said(answer.decision), self.reader).sentence

    @property
    def _most(self) -> int:
        return self.draft.observed.gpus * self.draft.observed.max_members

    def _size(self, answer: Answer) -> int:
        """What it would start with; where it waits, the least that it may."""
        one = self.draft.observed
        return one.gpus * (answer.decision.members if answer.starts else one.min_members)

    def _behind(self, answer: Answer) -> list[Workload]:
        """The first in line before it, as far as the reader may read of them."""
        ahead = asking.rows_of(self.cluster, answer.ahead[:NAMED])
        seen = visible_workloads(self.user).filter(pk__in=[work.pk for work in ahead])
        allowed = set(seen.values_list("pk", flat=True)) if ahead else set()
        return [work for work in ahead if work.pk in allowed]

    def _leaving(self, answer: Answer) -> list[str]:
        rows = asking.rows_of(self.cluster, answer.leaving)
        return [name_of(work, self.reader) or "" for work in rows]

    def _bar(self, answer: Answer, on: Axis | None) -> Bar | None:
        """The queue's bar with this workload in the hatch, framed as far as the limit allows."""
        share = answer.share
        if share is None or on is None:
            return None
        framed = 0 if answer.never else self.draft.observed.gpus * self.draft.observed.min_members
        return bar(str(self.draft.queue), figures_of(share), on, framed_gpus=framed)

    def most_cost(self, gpu_class: GpuClass) -> str:
        """Of the whole gang for its whole run-time limit; empty without one."""
        limit_s = self.draft.observed.run_time_limit_s
        return self._cost(gpu_class, self._most, limit_s) if limit_s else ""

    def _cost(self, gpu_class: GpuClass, size: int, seconds: float) -> str:
        hours = Decimal(size) / 1000 * Decimal(seconds) / 3600
        return money(gpu_class.price_per_gpu_hour * hours, self.cluster.currency)

    def _cost_words(self, gpu_class: GpuClass, answer: Answer, one: ExpectedRunTime | None) -> str:
        """Of the run as it is expected there, else of an hour."""
        if one is None or not one.compares:
            return f"{self._cost(gpu_class, self._size(answer), 3600)} an hour"
        return f"about {self._cost(gpu_class, self._size(answer), one.p50_s)}"

    def _cost_note(self, gpu_class: GpuClass, answer: Answer, one: ExpectedRunTime | None) -> str:
        size = gpus(self._size(answer))
        on = f"on {size} GPU{'' if size == '1' else 's'}"
        if one is not None and one.compares:
            on += f" in {duration(one.p50_s)}, P50"
        if not (most := self.most_cost(gpu_class)):
            return on
        return f"{on}; at most {most} in {duration(self.draft.observed.run_time_limit_s)}"


def _axis(answers: Sequence[Answer], draft: DraftWork) -> Axis | None:
    drawn = [figures_of(answer.share) for answer in answers if answer.share is not None]
    least = draft.observed.gpus * draft.observed.min_members
    return axis(drawn, least=max(1000, min(least, 10**6))) if drawn else None
