"""The page of evidence: tables from reports, between the markers of a page that people write.

    <!-- evidence division -->
    ...
    <!-- end of division -->

What stands between is replaced. ``missed`` and ``machine`` are of all reports together.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from workshop.benches.evidence.claims import CLAIMS, Claim, Goal, Line

Report = Mapping[str, Any]
"""What a bench printed, with ``at``; or ``failed`` or ``missing`` with a sentence instead of ``measured``."""
BLOCK = re.compile(
    r"(<!-- evidence (?P<name>[\w-]+) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL
)
NOT_RUN = "Not run."
WIDTH = 120


class PageError(ValueError):
    """The page lacks a marker, or has one of no claim."""


def rendered(page: str, reports: Mapping[str, Report]) -> str:
    """``page`` with every block made anew. Raises PageError."""
    blocks = {name: block(claim, reports.get(name)) for name, claim in CLAIMS.items()}
    blocks["missed"] = missed(reports)
    found = {match["name"] for match in BLOCK.finditer(page)}
    if found != blocks.keys():
        lacking, strange = sorted(blocks.keys() - found), sorted(found - blocks.keys())
        raise PageError(f"Markers lacking: {lacking}; markers of no claim: {strange}.")
    return BLOCK.sub(lambda match: match[1] + blocks[match["name"]] + "\n" + match[3], page)


def block(claim: Claim, report: Report | None) -> str:
    """The command, then the table; or in its place what came instead."""
    command = f"`python manage.py bench {claim.bench} --json`"
    if report is None:
        return f"{command}\n\n{NOT_RUN}"
    if "missing" in report:
        return f"{command}\n\nNot run: {report['missing']}"
    if "failed" in report:
        return f"{command}\n\n**Failed**: {report['failed']}"
    return "\n".join([command, "", *table(claim, report["measured"]), "", _run(report)])


def table(claim: Claim, measured: Mapping[str, float]) -> Iterator[str]:
    yield "| what | figure | goal | |"
    yield "|---|---|---|---|"
    for line in claim.lines:
        yield f"| {line.said} | {_figure(line, measured)} | {_goal(line)} | {_verdict(line, measured)} |"


def missed(reports: Mapping[str, Report]) -> str:
    """Every figure that did not reach its goal."""
    rows = [
        f"| {name} | {line.said} | {_figure(line, reports[name]['measured'])} | {_goal(line)} |"
        for name, claim in CLAIMS.items()
        if "measured" in reports.get(name, {})
        for line in claim.lines
        if line.name in reports[name]["measured"]
        and line.is_met(reports[name]["measured"][line.name]) is False
    ]
    if not rows:
        return "None of the figures that were measured misses its goal."
    return "\n".join(["| bench | what | figure | goal |", "|---|---|---|---|", *rows])


def _figure(line: Line, measured: Mapping[str, float]) -> str:
    value = measured.get(line.name)
    if value is None:
        return "not reported"
    return _number(value, line.digits)


def _number(value: float, digits: int) -> str:
    if value != 0 and abs(value) < 10**-6:
        return f"{value:.1e}"
    return f"{value:,.{digits}f}" if digits < 15 else f"{value:g}"


def _goal(line: Line) -> str:
    if line.goal is None:
        return ""
    if line.goal == Goal.WITHIN:
        return f"{line.bounds[0]:g} to {line.bounds[1]:g}"
    return f"{line.goal.value} {_plain(line.bounds[0])}"


def _plain(bound: float) -> str:
    return f"{bound:,.10g}" if abs(bound) >= 1e-6 else f"{bound:g}"


def _verdict(line: Line, measured: Mapping[str, float]) -> str:
    value = measured.get(line.name)
    met = None if value is None else line.is_met(value)
    return "" if met is None else "reached" if met else "**missed**"


def _run(report: Report) -> str:
    machine = report["machine"]
    spent = (
        f"{report['cpu_s']:,.0f} CPU-s, {report['wall_s']:,.0f} s, {report['peak_mib']:,.0f} MiB"
    )
    where = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
    text = f"{spent} on {where}; load {report['load']:.1f} when it ended, {report['at']} UTC."
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
