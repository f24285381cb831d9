"""Filters and tags that every template uses; the work is in ``portal.display.format``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template.context import Context
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.display import format as show
from portal.display import sentences
from portal.display.later import unfinished
from portal.selectors.losses import lost_by
from portal.teams.reading import reader_of
from scheduling.models import Eviction, GpuClass, Queue, Share, Workload
from scheduling.services.starts.tell import PredictedStart, like, predicted_start, trust
from scheduling.services.words.rules import cause_of, label_of
from scheduling.services.words.sentences import (
    Row,
    home_of,
    may_name,
    name_of,
    place_of,
    queue_of,
    readable,
)

register = template.Library()

for shown in (
    show.duration, show.hmin, show.gpu_hours, show.money, show.whole_money, show.reason_headline,
    show.counted, show.gpus_counted, show.hours, show.percent, show.memory, show.ratio, show.added,
    show.hmin_band,
):  # fmt: skip
    register.filter(shown.__name__, shown)
register.filter("vain_of", cause_of)


@register.filter
def gpus(milli: show.Number | None) -> SafeString:
    """Milli-GPU as GPUs; a zero is muted."""
    return _muted_zero(show.gpus(milli))


@register.filter
def rule_of(eviction: Eviction) -> str:
    return label_of(eviction.rule, eviction.allowed_by)


@register.filter
def signed(milli: show.Number | None) -> SafeString:
    """A difference in GPUs with its sign; a zero is muted."""
    return _muted_zero(show.signed(milli))


@register.filter
def size(milli: show.Number) -> str:
    """A difference without its sign, for sentences that say 'above' or 'below'."""
    return show.gpus(abs(float(milli)))


@register.filter
def excess(share: Share) -> float:
    """Allocated minus fair share, milli-GPU; less than half a thousandth is rounding."""
    difference = share.allocated - share.fair_share
    return 0 if abs(difference) < 0.5 else difference


@register.filter
def breakable(path: Any) -> SafeString:
    """A queue's path that may break after each slash."""
    return format_html_join(mark_safe("/<wbr>"), "{}", ((part,) for part in str(path).split("/")))


@register.filter
def count(value: show.Number | None) -> str:
    """A number with its thousands apart."""
    return show.NONE if value is None else show.number(value)


@register.filter
def seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s"


def _muted_zero(text: str) -> SafeString:
    if text in {"0", show.NONE}:
        return format_html('<span class="zero">{}</span>', text)
    return format_html("{}", text)


@register.simple_tag(takes_context=True)
def when(context: Context, at: datetime | None) -> SafeString:
    """``{% when workload.submitted_at %}``: local time of the page's cluster, UTC on hover."""
    if at is None:
        return _muted_zero(show.NONE)
    shell = context["shell"]
    return _time(at, show.when(at, shell.now, shell.zone))


@register.simple_tag(takes_context=True)
def band(context: Context, start: datetime, end: datetime | None, between: str = "–") -> SafeString:
    """``{% band start.p50 start.p90 "to" %}``: 'Fri 02:30 to 04:00'; one time where both read the same."""
    shell, first = context["shell"], when(context, start)
    if end is None or show.when(end, shell.now, shell.zone) == show.when(
        start, shell.now, shell.zone
    ):
        return first
    return format_html(
        "{} {} {}", first, between, _time(end, show.when(end, shell.now, shell.zone, after=start))
    )


@register.simple_tag(takes_context=True)
def when_text(context: Context, at: datetime) -> str:
    """The same as plain text, for a label."""
    return show.when(at, context["shell"].now, context["shell"].zone)


@register.simple_tag(takes_context=True)
def clock(context: Context, at: datetime) -> SafeString:
    """``{% clock shell.now %}``: '10:42:16 CET', UTC on hover."""
    return _time(at, show.clock(at, context["shell"].zone))


@register.simple_tag(takes_context=True)
def planned(context: Context, at: datetime) -> SafeString:
    """``{% planned plan.at %}``: 'planned at 10:42:16 CET', with day and age where it is old."""
    shell = context["shell"]
    said, ago = show.planned(at, shell.now, shell.zone)
    return format_html("planned at {}{}", _time(at, said), ago)


@register.simple_tag(takes_context=True)
def moment(context: Context, at: datetime) -> SafeString:
    """``{% moment cycle.at %}``: 'Thu 19 Nov 2026 10:42:16', UTC on hover."""
    return _time(at, show.moment(at, context["shell"].zone))


@register.simple_tag(takes_context=True)
def period(context: Context, start: datetime, end: datetime) -> str:
    """``{% period experiment.begin experiment.end %}``: '20 Nov – 26 Nov 2026', in the page's zone."""
    return show.period(start, end, context["shell"].zone)


@register.simple_tag(takes_context=True)
def second(context: Context, at: datetime, near: datetime) -> SafeString:
    """``{% second cause.at cycle.at %}``: '10:42:16', with its day where that is another one."""
    return _time(at, show.second(at, near, context["shell"].zone))


def _time(at: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(), show.utc(at), text
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """A glyph of the sprite; it is decoration, the word stands beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>',
        static("icons/sprite.svg"),
        name,
    )


@register.filter
def state_badge(workload: Workload | str) -> SafeString:
    """Glyph and word of a workload's state; finished work shows its outcome, held work its hold."""
    state = workload if isinstance(workload, str) else _shown_state(workload)
    glyph, tone = show.state_glyph(state)
    return format_html(
        '<span class="badge badge-{}">{}{}</span>', tone, icon(glyph), state.capitalize()
    )


def _shown_state(workload: Workload) -> str:
    if workload.outcome:
        return workload.outcome
    if workload.is_waiting and workload.held:
        return "held"
    if workload.is_waiting and workload.reason == "misrouted":
        return "misrouted"
    return workload.state


@register.filter
def class_swatch(gpu_class: GpuClass | None) -> SafeString:
    """A GPU class with the colour it has on every page."""
    if gpu_class is None:
        return _muted_zero(show.NONE)
    return format_html(
        '<span class="nowrap"><span class="swatch swatch-{}"></span>{}</span>',
        show.class_number(gpu_class.position),
        gpu_class.name,
    )


@register.inclusion_tag("components/later.html")
def later(kind: str) -> dict[str, Any]:
    """That a demo is still working out what will stand here; nothing anywhere else."""
    return {"later": unfinished(kind), "kind": kind}


@register.inclusion_tag("components/wall.html", takes_context=True)
def wall_clock(context: Context) -> dict[str, Any]:
    """Whose times stand beside it, where the cluster's clock is another: nothing where it is the wall's."""
    return {"shell": context["shell"], "wall": timezone.now()}


@register.simple_tag(takes_context=True)
def wall(context: Context, at: datetime) -> SafeString:
    """A time of the wall among those of the cluster, named so where that one's clock is another."""
    cluster = context["shell"].cluster
    named = " by the wall’s clock" if cluster and cluster.clock_speed != 1 else ""
    return format_html("{}{}", when(context, at), named)


@register.simple_tag
def planned_ago(at: datetime) -> str:
    """Time passed since a plan; plans are stamped with the wall's time."""
    return show.duration(timezone.now() - at)


@register.filter
def age(since: datetime | None, now: datetime) -> str:
    """Time passed: ``{{ work.since|age:shell.now }}`` -> '2 h 44 min'."""
    return show.duration(None if since is None else now - since)


@register.filter
def asks(workload: Workload) -> SafeString:
    """What a workload asks for: '4–8 × h100-80gb or a100-40gb'. The name of a class does not break."""
    least, most = workload.gpus * workload.min_members, workload.gpus * workload.max_members
    amount = show.gpus(least) if least == most else f"{show.gpus(least)}–{show.gpus(most)}"
    first, *others = workload.gpu_classes or ("any class",)
    parts = [(f"{amount} × {first}",), *((one,) for one in others)]
    return format_html_join(" or ", '<span class="nowrap">{}</span>', parts)


@register.simple_tag(takes_context=True)
def workload_link(context: Context, workload: Workload) -> SafeString:
    """The workload's name, a link where its page is served; of another team's that it is one."""
    reader = reader_of(context["request"])
    if not may_name(workload, reader):
        return format_html('<span class="muted">{}</span>', name_of(workload, reader))
    address = url_if("web:workload", context["shell"].cluster.name, workload.uid)
    if not address:
        return format_html('<span class="name">{}</span>', workload.name)
    return format_html('<a class="name" href="{}">{}</a>', address, workload.name)


@register.simple_tag(takes_context=True)
def behind(
    context: Context, queue: Queue, gpu_class: GpuClass, state: str, milli: show.Number
) -> SafeString:
    """A figure of a queue as a link to the workloads it is made of; a zero leads nowhere."""
    address = url_if("web:workloads", context["shell"].cluster.name)
    if not milli or not address:
        return _muted_zero(show.gpus(milli))
    query = urlencode({"queue": queue.name, "gpu_class": gpu_class.name, "state": state})
    return format_html('<a href="{}?{}">{}</a>', address, query, show.gpus(milli))


_NUMBER = re.compile(r"(?<![\w.:-])\d[\d,]*(?:\.\d+)?(?![\w:-])")


@register.simple_tag(takes_context=True)
def why(context: Context, workload: Workload) -> SafeString:
    """The reason's sentence as the person may read it; each number the engine gave with it leads to the
    queue it is from.
    """
    reader = reader_of(context["request"])
    may, home = readable(workload, reader), home_of(workload, reader)
    if not workload.reason:
        own = context["shell"].cluster
        said = sentences.before_first_plan(own.cycle_interval_s, own.clock_speed)
        return format_html("{}", said)
    address = url_if("web:queue", workload.cluster.name, home.name) if home else ""
    given = [v for v in may.numbers.values() if isinstance(v, int | float)]
    known = {show.number(v, decimals) for v in given for decimals in (1, 3)} if address else set()
    return _with_instants(context, may.sentence, lambda text: _linked(text, known, address))


def _linked(text: str, known: set[str], address: str) -> SafeString:
    """``text`` with each number that is ``known`` as a link."""
    parts, end = [], 0
    for match in _NUMBER.finditer(text):
        if match[0] in known:
            parts.append((text[end : match.start()], address, match[0]))
            end = match.end()
    link = '{}<a class="number-link" href="{}">{}</a>'
    return format_html("{}{}", format_html_join("", link, parts), text[end:])


@register.simple_tag(takes_context=True)
def sentence_of(context: Context, row: Row, *, loss: bool = True) -> SafeString:
    """The sentence of a row as the person may read it; without its ``loss`` where that stands beside it."""
    sentence = readable(row, reader_of(context["request"])).sentence
    return _with_instants(context, sentence if loss else sentences.without_loss(sentence))


@register.simple_tag(takes_context=True)
def local(context: Context, sentence: str) -> SafeString:
    """A sentence that may name instants, with those in the reader's time, UTC on hover."""
    return _with_instants(context, sentence)


@register.simple_tag(takes_context=True)
def not_before(context: Context, workload: Workload) -> SafeString:
    """Until when it can't start, where its sentence does not say that itself; else nothing."""
    said = readable(workload, reader_of(context["request"])).sentence
    if workload.until is None or sentences.tells_time(said):
        return mark_safe("")
    return when(context, workload.until)


def _with_instants(
    context: Context, sentence: str, mark: Callable[[str], SafeString] = conditional_escape
) -> SafeString:
    """``sentence`` with its instants in the reader's time; ``mark`` makes HTML of the text between."""
    parts = (
        mark(part) if isinstance(part, str) else when(context, part)
        for part in sentences.pieces(sentence)
    )
    return format_html_join("", "{}", ((part,) for part in parts))


register.filter("lost_by", lost_by)
register.filter("without_loss", sentences.without_loss)
register.filter("tells_time", sentences.tells_time)


@register.simple_tag(takes_context=True)
def predicted(context: Context, workload: Workload) -> PredictedStart:
    """Its predicted start as it is said now; read the row with the workload."""
    row, shell = getattr(workload, "start_forecast", None), context["shell"]
    return predicted_start(row, shell.now, shell.hit_rates if row and row.p50_at else None)


@register.simple_tag(takes_context=True)
def trust_in(context: Context, start: datetime, gpu_class: GpuClass) -> str:
    """How forecasts like that of a start there, made now, have held."""
    shell = context["shell"]
    return trust(like(shell.hit_rates, gpu_class.name, (start - shell.now).total_seconds()))


@register.simple_tag(takes_context=True)
def place(context: Context, workload: Workload) -> SafeString:
    """The path of its queue, which may break after each slash; of one out of sight the label."""
    return breakable(place_of(workload, reader_of(context["request"])))


@register.simple_tag(takes_context=True)
def place_text(context: Context, workload: Workload) -> str:
    """The same as plain text, for a title."""
    return place_of(workload, reader_of(context["request"]))


@register.simple_tag(takes_context=True)
def place_name(context: Context, workload: Workload) -> str:
    """The same without the queues above."""
    return place_of(workload, reader_of(context["request"])).rpartition("/")[2]


@register.simple_tag(takes_context=True)
def name_of_work(context: Context, workload: Workload | None) -> str:
    """Its name, or that it is another team's; empty for none."""
    return name_of(workload, reader_of(context["request"])) or ""


@register.simple_tag(takes_context=True)
def name_of_queue(context: Context, queue: Queue | None) -> SafeString:
    """Its path, which may break after each slash, or that it is another team's; "no queue" for none."""
    return breakable(queue_of(queue, reader_of(context["request"])) or "no queue")


@register.simple_tag
def url_if(name: str, *args: Any, **kwargs: Any) -> str:
    """The address of a page, empty when this installation does not serve it."""
    try:
        return reverse(name, args=args, kwargs=kwargs)
    except NoReverseMatch:
        return ""


@register.filter
def lowfirst(text: str) -> str:
    """``text`` as it goes on inside a sentence; what begins with an abbreviation stays as it is."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
