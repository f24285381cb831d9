"""What a workload wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from weir.api import workload
from weir.commands.options import Options, printed
from weir.printing import safe

EVERY_S = 2.0
"""Between two readings of a log that is followed."""
FOLLOWED_LINES = 500
Line = tuple[str, str]


@click.command()
@click.argument("name")
@click.option("--follow", "-f", is_flag=True, help="Go on until the pod has ended.")
@click.option("--pod", help="One of the gang; else the first that failed, or that runs.")
@click.option("--container", "-c")
@click.option("--tail", "lines", default=200, show_default=True, type=click.IntRange(1, 2000))
@click.option("--previous", "-p", is_flag=True, help="Of the container before its last restart.")
@click.pass_obj
def logs(given: Options, /, name: str, follow: bool, previous: bool, **query: Any) -> None:
    """The last lines that a workload (NAME or uid) wrote."""
    api = given.api()
    path = api.within(f"workloads/{workload(api, name)['uid']}/log")
    query["previous"] = "true" if previous else None
    found = api.get(path, **query)
    if printed(given, found):
        return
    _heading(found)
    shown = _lines(found)
    _write(shown)
    if follow and found["pod"]:
        query |= {"pod": found["pod"], "container": found["container"], "lines": FOLLOWED_LINES}
        _follow(lambda: api.get(path, **query), found, shown)


def _follow(read: Callable[[], Any], found: Mapping[str, Any], shown: list[Line]) -> None:
    while found["is_live"]:
        time.sleep(EVERY_S)
        found = read()
        lines = _lines(found)
        _write(new_of(shown, lines))
        shown = lines or shown


def new_of(shown: Sequence[Line], lines: Sequence[Line]) -> Sequence[Line]:
    """Those of ``lines`` that follow the last of what was shown; all where that has been left behind."""
    if shown:
        for at in range(len(lines), 0, -1):
            if lines[at - 1] == shown[-1] and _ends_alike(shown, lines[:at]):
                return lines[at:]
    return lines


def _ends_alike(shown: Sequence[Line], lines: Sequence[Line]) -> bool:
    most = min(len(shown), len(lines))
    return list(shown[-most:]) == list(lines[-most:])


def _heading(found: Mapping[str, Any]) -> None:
    """On the error stream, so that a pipe has the log alone."""
    if found["why_not"]:
        click.echo(safe(found["why_not"]), err=True)
    if len(found["pods"]) > 1:
        click.echo(
            safe(f"{found['pod']} ({found['container']}), one of {len(found['pods'])} pods"),
            err=True,
        )


def _lines(found: Mapping[str, Any]) -> list[Line]:
    return [(line["at"], line["text"]) for line in found["lines"]]


def _write(lines: Sequence[Line]) -> None:
    for _, text in lines:
        click.echo(safe(text))
