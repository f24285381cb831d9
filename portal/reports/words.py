"""How the reports read: ranges, and the sentence that stands above each. Figures read as on every page."""

from __future__ import annotations

from datetime import datetime

from portal.display.format import (
    counted,
    duration,
    gpus,
    gpus_counted,
    hours,
    money,
    number,
    percent,
    period,
    when,
    whole_money,
)
from portal.display.periods import HOUR_S
from portal.display.sentences import and_list
from portal.display.spread import LEAST, share
from portal.display.units import gpus_each
from portal.reports import samples
from portal.reports.budgets import Spending
from portal.reports.declaration import Finding
from portal.reports.entitlements import Entitlement
from portal.reports.fairness import FairnessReport
from portal.reports.filters import LAST_MONTH, PRESETS, ReportFilters
from portal.reports.forecast import ClassAhead, ForecastReport
from portal.reports.fragmentation import FragmentationReport
from portal.reports.longest import CAUSES, QUOTA, LongestReport, LongestRow
from portal.reports.preemptions import PreemptionsReport
from portal.reports.showback import ShowbackReport
from portal.reports.use import UseReport
from portal.reports.utilization import QueueRow, UtilizationReport
from portal.reports.waits import WaitsReport

WEEKDAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def range_label(filters: ReportFilters) -> str:
    """'20 Oct – 18 Nov 2026'; with hours where the range does not begin and end at midnight."""
    return period(filters.start, filters.end, filters.zone)


def range_name(filters: ReportFilters) -> str:
    """What the closed range field says: the name of a preset, else the days."""
    return PRESETS[filters.preset] if filters.preset else range_label(filters)


def range_note(filters: ReportFilters, until: datetime | None) -> str:
    """'5 Nov 10:44 – 19 Nov 10:44, in CET · samples up to 10:00'; unnamed, with its length."""
    end = filters.end.astimezone(filters.tz)
    span = "" if filters.preset else f"{span_label(filters)}, "
    note = f"{span}{range_label(filters)}, in {end:%Z}"
    return note + (f" · samples up to {when(until, filters.end, filters.zone)}" if until else "")


def not_compared(filters: ReportFilters, since: datetime | None) -> str:
    """Why the range before is not held against this one; empty where all of it is known."""
    if since is not None and since <= samples.reaching(filters.before()):
        return ""
    said = f"known since {when(since, filters.end, filters.zone)}" if since else "not known yet"
    return f"Not compared with {before_label(filters)}: work and its GPUs are {said}."


def before_label(filters: ReportFilters) -> str:
    """'the 30 days before', 'the month before'; of a month that goes on as much of the one before."""
    if not filters.is_month:
        return f"the {span_label(filters)} before"
    return "the month before" if filters.preset == LAST_MONTH else "as much of the month before"


def span_label(filters: ReportFilters) -> str:
    """'30 days' or '24 hours'."""
    return span_of(filters.span.total_seconds() / HOUR_S)


def span_of(hours_long: float) -> str:
    """Hours below two days, else days."""
    if hours_long < 48:
        return counted(max(1, round(hours_long)), "hour")
    return counted(round(hours_long / 24), "day")


def hour_name(hour_of_week: int) -> str:
    """34 -> 'Tuesday 10:00'."""
    return f"{WEEKDAY_NAMES[hour_of_week // 24]} {hour_of_week % 24:02d}:00"


def utilization_finding(report: UtilizationReport) -> Finding:
    total, hours_long = report.total, report.covered_hours
    if total.known == 0:
        return Finding("Nothing was allocated in this range.")
    noun = "ready GPU-hours" if report.against == "ready" else "the nominal quota"
    bold = f"{percent(total.allocated_share)} of {noun} were allocated"
    if report.against == "nominal":
        bold = f"{percent(total.allocated_share)} of {noun} was held"
    if total.is_measured:
        bold += f", and {percent(total.used_share)} of that was really used."
        rest = f"{hours(total.idle)} GPU-hours were held and idle, "
        rest += _all_the_time(total.idle / hours_long, report)
        most = _most([(row, row.usage.idle) for row in report.queues])
    else:
        bold += "."
        rest = f"{hours(total.allocated)} GPU-hours were held, "
        rest += _all_the_time(total.known / hours_long, report)
        most = _most([(row, row.usage.allocated) for row in report.queues])
    return Finding(bold, f"{rest}{most}.")


def _all_the_time(gpus: float, report: UtilizationReport) -> str:
    """'which is 12.3 GPUs all the time', and over how much of the range where that is not all known."""
    known = report.covered_hours
    span, whole = span_of(known), span_label(report.filters)
    over = "" if span == whole else f" of the {span} that are known"
    return f"which is {gpus_counted(1000 * gpus)} all the time{over}"


def _most(rows: list[tuple[QueueRow, float]], count: int = 3) -> str:
    """'; inference, vision and search hold 48 % of them', with several queues only."""
    total = sum(value for _, value in rows)
    first = sorted(rows, key=lambda pair: -pair[1])[:count]
    if len(rows) <= count or total <= 0:
        return ""
    part = sum(value for _, value in first) / total
    return f"; {and_list([row.name for row, _ in first])} hold {percent(part)} of them"


def use_finding(report: UseReport) -> Finding:
    total = report.total
    idle = held_idle(report)
    cost = [row.per_hour for row in report.now if row.per_hour is not None]
    now = "Nothing that you may see idles now."
    if idle:
        price = f", {money(sum(cost), report.cluster.currency)} an hour" if cost else ""
        now = f"Now {idle} of {counted(len(report.now), 'workload')} idle{price}."
    if not total.is_measured:
        return Finding("Nothing was measured in this range.", now)
    bold = f"{percent(total.used_share)} of what was allocated was really used"
    if total.idle > 0:
        rest = share(report.nothing, total.idle)
        bold += f"; of the rest, {percent(rest)} sat on GPUs on which nothing ran"
    return Finding(f"{bold}.", now)


def showback_finding(report: ShowbackReport) -> Finding:
    total, shown, currency = report.total, report.shown, report.cluster.currency
    bold = f"{whole_money(shown.charged, currency)} in {span_label(report.filters)}"
    if total.measured and total.charged:
        bold += (
            f", and {whole_money(shown.idle, currency)} of it, {percent(shown.idle_share)}, "
            "paid for GPUs that were held and idle"
        )
    return Finding(f"{bold}.", _spent_soonest(report))


def _spent_soonest(report: ShowbackReport) -> str:
    """The budget that runs out first, if one does before its end."""
    ends = [(one.runs_out, one) for one in report.budgets if one.runs_out is not None]
    if not ends:
        return ""
    day, one = min(ends, key=lambda pair: (pair[0], pair[1].budget.queue.path))
    name, end = one.budget.queue.name, one.at_end
    if one.left <= 0:
        return f"{name} has used its budget on {day.day} {day:%b}."
    currency = report.cluster.currency
    short = whole_money((end or 0.0) - one.amount, currency)
    daily = whole_money(one.a_day, currency)
    said = f"{name} spends {daily} a day and will have used its budget on {day.day} {day:%b}, "
    return f"{said}{short} short by its end{_idles_most(report, one)}."


def _idles_most(report: ShowbackReport, one: Spending) -> str:
    """'; 46 % of what it paid for idle GPUs is recommend's'; of several queues below one budget only."""
    below = [row for row in report.queues if one.covers(row.path)]
    total = sum(row.costs.idle for row in below)
    if len(below) < 2 or total <= 0:
        return ""
    most = max(below, key=lambda row: row.costs.idle)
    return f"; {percent(most.costs.idle / total)} of what it paid for idle GPUs is {most.name}'s"


def held_idle(report: UseReport) -> str:
    """'17 GPUs and 6 slices'; empty where none idle."""
    whole = sum(r.spell.gpus for r in report.now if gpus_each(r.spell.gpu_class) == 1)
    slices = sum(r.spell.gpus for r in report.now if gpus_each(r.spell.gpu_class) != 1)
    parts = [gpus_counted(whole)] if whole else []
    return and_list([*parts, gpus_counted(slices, "slices")] if slices else parts)


def waits_finding(report: WaitsReport) -> Finding:
    total = report.total
    bold = (
        f"Half of {counted(total.count, 'workload')} started within {duration(total.p50)}, "
        f"nine of ten within {duration(total.p90)}."
    )
    if total.count == 1:
        bold = f"One workload started, after {duration(total.p50)}."
    rest = []
    if (slow := report.tail_queue) is not None:
        rest.append(f"{slow.path} waits longest, nine of ten within {duration(slow.spread.p90)}.")
    if (worst := report.worst_hour) is not None:
        among = f"Of hours with at least {LEAST} starts, the" if report.leaves_out else "The"
        rest.append(
            f"{among} worst hour to submit is {hour_name(worst)}, "
            f"with a P90 of {duration(report.week[worst].p90)}"
        )
        if (tail := report.tail_class) is not None:
            rest[-1] += (
                f"; of the classes {tail.name} has the longest P90, {duration(tail.spread.p90)}"
            )
        rest[-1] += "."
    if report.before is not None:
        rest.append(
            f"In {before_label(report.filters)}, P50 was {duration(report.before.p50)} "
            f"and P90 {duration(report.before.p90)}."
        )
    return Finding(bold, " ".join(rest))


def waiting_sentence(report: WaitsReport) -> str:
    """What had not started when the range ended, which the percentiles leave out."""
    left = report.waiting
    parts = []
    if left.count:
        verb = "was" if left.count == 1 else "were"
        parts.append(
            f"{counted(left.count, 'workload')} {verb} still waiting at the end of the range, for "
            f"{gpus_counted(left.gpus)}, the longest for {duration(left.longest_s)} so far; "
            "their wait is not over, so they are not in the percentiles."
        )
    if left.again:
        parts.append(
            f"{counted(left.again, 'workload')} for {gpus_counted(left.again_gpus)} had run before and "
            "waited again after an eviction; only the first wait is in the percentiles."
        )
    if left.cancelled:
        verb = "was" if left.cancelled == 1 else "were"
        parts.append(f"{number(left.cancelled)} {verb} cancelled before starting.")
    return " ".join(parts)


def preemptions_finding(report: PreemptionsReport) -> Finding:
    bold = f"{counted(report.count, 'eviction')} lost {hours(report.lost)} GPU-hours"
    if report.lost_share is not None:
        bold += f", {percent(report.lost_share)} of what was allocated"
    bold += f"; {percent(report.rule_count('reclaim') / report.count)} were reclaims."
    return Finding(bold, _givers(report))


def lead_of(seconds: float) -> str:
    """'2 h 10 min', '2 h 10 min behind'."""
    return duration(abs(seconds)) + (" behind" if seconds < 0 else "")


def fairness_finding(report: FairnessReport) -> Finding:
    """Queues that received what they were entitled to, where that was sampled; then what sharing was
    worth."""
    lead = _lead_finding(report) if report.ended else Finding("")
    found = report.entitlement
    if found is None or not found.queues:
        return lead
    return Finding(_entitled(found), str(lead))


def _entitled(found: Entitlement, least: float = 0.95) -> str:
    known = [row for row in found.queues if row.part is not None]
    missed = [row for row in known if (row.part or 0.0) < least]
    if not missed:
        return f"Every queue received at least {percent(least)} of what it was entitled to."
    first = min(missed, key=lambda row: row.part or 0.0)
    said = f"{first.path} received {percent(first.part)} of what it was entitled to"
    if len(missed) == len(known):
        return f"No queue received {percent(least)} of what it was entitled to; {said}."
    if len(missed) == 1:
        return f"{said}, every other queue at least {percent(least)}."
    return f"{said}; all but {number(len(missed))} queues received at least {percent(least)}."


def _lead_finding(report: FairnessReport) -> Finding:
    ahead = "ahead of" if report.lead_s >= 0 else "behind"
    bold = (
        f"On average work was {duration(abs(report.lead_s))} {ahead} the quota of its queue alone"
    )
    bold += f"; {number(report.late_all)} of {number(report.ended)} ended later than alone."
    losers = [row.name for row in report.queues if row.lead_s < 0]
    if not losers:
        return Finding(bold, "No queue is behind on average.")
    verb = "is" if len(losers) == 1 else "are"
    return Finding(bold, f"{and_list(losers[:3])} {verb} behind on average.")


def longest_finding(report: LongestReport) -> Finding:
    waited = counted(round(report.hours), "waiting hour")
    others = [
        f"{percent(report.share('fragmented'))} were fragmentation",
        f"{percent(report.share('room'))} a full cluster",
    ]
    if report.share("down"):
        others.append(f"{percent(report.share('down'))} nodes that were down")
    bold = (
        f"{percent(report.share(*QUOTA))} of {waited} were quota: past "
        f"a share, a nominal or a limit; {and_list(others)}."
    )
    part = report.longest_hours / report.hours if report.hours else 0.0
    who = counted(report.longest_count, "workload")
    rest = f"The {who} that waited longest took {percent(part)} of these hours."
    if report.before_quota_share is not None:
        rest += f" Quota was {percent(report.before_quota_share)} in the period before."
    return Finding(bold, rest)


def fragmentation_finding(report: FragmentationReport) -> Finding:
    free, lost = report.of_now("free"), report.of_now("fragmented")
    bold = "No GPU is free now."
    if free:
        part = f"{gpus(lost)} of" if lost else "None of"
        bold = f"{part} {gpus_counted(free, 'free GPUs')} {_are(lost)} of no use "
        bold += "to what waits, or where nothing waits to what usually runs."
    said = []
    if report.mean is not None:
        mean = f"On average {number(report.mean, 1)} were in these {span_label(report.filters)}"
        if report.mean_before is not None:
            mean += f", {number(report.mean_before, 1)} before"
        said.append(f"{mean}, {percent(report.share)} of what was ready.")
    if report.waited_count:
        who = counted(report.waited_count, "workload")
        waiting = f"{hours(report.waited_hours)} h for GPUs that were free but scattered"
        said.append(f"{who} waited {waiting}, {percent(report.waited_share)} of all waiting.")
    return Finding(bold, " ".join(said))


def _are(milli: float) -> str:
    return "is" if milli in {0, 1000} else "are"


def forecast_finding(report: ForecastReport) -> Finding:
    chosen = report.chosen
    if chosen is None:
        return Finding("No class has a forecast yet.", "It takes two weeks of known demand.")
    bold = _passes(report, chosen)
    others = [row for row in report.rows if row is not chosen and row.is_told]
    short = [row.gpu_class.name for row in others if not row.holds]
    rest = ""
    if chosen.hours_above:
        above = f"above what is {report.against} in {chosen.hours_above} of the next 168 hours"
        rest = f"Its demand is {above}. "
    if short:
        verb = "passes" if len(short) == 1 else "pass"
        rest += f"{and_list(short)} {verb} what there is as well."
    elif others:
        rest += "The other classes hold."
    return Finding(bold, rest)


def _passes(report: ForecastReport, chosen: ClassAhead) -> str:
    name, at = chosen.gpu_class.name, chosen.passing
    has = f"{number(chosen.capacity)} {report.against} {chosen.unit}"
    if at is None or at.middle is None:
        return f"No class passes what it has in 26 weeks; {name}, with {has}, comes nearest."
    if chosen.row is not None and at.middle <= chosen.row.made_at:
        return f"Demand for {name} is above its {has} already, on the weekly mean."
    middle = at.middle.astimezone(report.filters.tz)
    return f"Demand for {name} passes its {has} on {middle.day} {middle:%b %Y}, on the weekly mean."


def mostly(row: LongestRow) -> str:
    """'Past share or nominal; then fragmented'."""
    titles = {cause.name: cause.title for cause in CAUSES}
    first, *more = (titles[name] for name in row.waited.mostly[:2])
    return f"{first}; then {more[0][:1].lower()}{more[0][1:]}" if more else first


def _givers(report: PreemptionsReport, count: int = 2) -> str:
    """Which queues gave back the most."""
    caused = sum(row.caused for row in report.queues)
    most = sorted((q for q in report.queues if q.caused), key=lambda q: (-q.caused, q.path))[:count]
    if len(report.queues) <= count or not most:
        return ""
    given, lost = sum(row.caused for row in most), sum(row.share or 0 for row in most)
    verb = "gives" if len(most) == 1 else "give"
    return (
        f"{and_list([row.name for row in most])} {verb} back the most: {number(given)} of "
        f"{number(caused)} reclaims and preemptions, {percent(lost)} of the loss."
    )
