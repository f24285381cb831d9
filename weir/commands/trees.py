"""The tree of queues as a file: written out, compared with what is in force, applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any
from urllib.parse import quote

import click

from weir.api import Api
from weir.commands.options import YES, Options, printed, read_yaml, sure
from weir.faults import DIFFERS, Fault
from weir.printing import YAML, counted, document, number, safe, table

Tree = Sequence[Mapping[str, Any]]
WORDS = ("namespace", "access_group", "priority")
DEFAULTS: Mapping[str, float | None] = {
    "nominal": 0, "borrowing_limit": None, "lending_limit": None, "weight": 1,
}  # fmt: skip
"""Figures of a queue by class, and what holds where none is said; None is no limit."""
FILE = click.option(
    "-f", "--file", type=click.File(), required=True, help="The tree as YAML; - is standard input."
)

TAKING = click.option(
    "--taking", multiple=True, metavar="NAMESPACE",
    help="One that stands on the cluster, of which a refusal said what becomes of it.",
)  # fmt: skip


QUEUE = click.option("--queue", metavar="NAME", help="A queue that you divide: what is below it.")


@click.command("export")
@QUEUE
@click.option("--at", help="As of an instant, such as 2026-01-05T10:00:00Z.")
@click.pass_obj
def export(given: Options, /, queue: str | None, at: str | None) -> None:
    """The tree with the figures in force, as a file that `quota apply` takes."""
    api = given.api()
    body = api.get(place(api, queue), at=at)
    if not printed(given, body):
        document(body, YAML)


@click.command("diff")
@FILE
@QUEUE
@click.pass_context
def diff(context: click.Context, /, file: IO[str], queue: str | None) -> None:
    """What `quota apply` of a file would change. Nothing is saved; exit code 6 where it is anything."""
    given: Options = context.obj
    queues, api = _queues(file), given.api()
    found = list(differences(api.get(place(api, queue))["queues"], queues))
    if not printed(given, found):
        print_differences(found)
    if found:
        context.exit(DIFFERS)


@click.command("apply")
@FILE
@QUEUE
@click.option("--reason", required=True)
@TAKING
@YES
@click.pass_obj
def apply(
    given: Options,
    /,
    file: IO[str],
    queue: str | None,
    reason: str,
    taking: Sequence[str],
    yes: bool,
) -> None:
    """Make and change the queues of a file with their figures, all or nothing; others stay. Of a queue that
    you divide it changes the figures alone."""
    queues, api = _queues(file), given.api()
    found = list(differences(api.get(place(api, queue))["queues"], queues))
    if not found:
        if not printed(given, {"queues": []}):
            print_differences(found)
        return
    if not yes:
        print_differences(found)
    sure(f"Apply {counted(len(found), 'change')} of {file.name}?", yes=yes)
    made = put_tree(api, queues, reason, taking, below=queue)
    if not printed(given, made):
        for path in made["queues"]:
            click.echo(safe(path))


def place(api: Api, queue: str | None) -> str:
    """Where the tree is read and written, or what is below ``queue``: one address, by which a write knows
    what was read."""
    return api.within("tree") + (f"?queue={quote(queue)}" if queue else "")


def put_tree(
    api: Api, queues: Tree, reason: str, taking: Sequence[str], *, below: str | None = None
) -> dict[str, Any]:
    """The paths of the queues that stand there then, as ``queues``."""
    sent = {"queues": queues, "reason": reason, "taking": taking}
    made: dict[str, Any] = api.put(place(api, below), sent)
    return made


def differences(now: Tree, then: Tree) -> Iterator[dict[str, Any]]:
    """What ``then`` says otherwise than ``now``: {queue, what, before, after}. What it does not name stays,
    so it is none."""
    there = {queue["name"]: (queue, above) for queue, above in _walk(now, "")}
    for queue, above in _walk(then, ""):
        name = str(queue.get("name"))
        if name not in there:
            yield _line(name, "queue", None, f"new, below {above}" if above else "new, at the top")
        has, below = there.get(name, ({}, above))
        if below != above:
            yield _line(name, "below", below or "the top", above or "the top")
        yield from _words(name, has, queue)
        yield from _figures(name, has, queue)


def _walk(tree: Tree, above: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    for queue in tree:
        if not isinstance(queue, Mapping):
            continue  # The server names its place.
        yield queue, above
        below = queue.get("queues")
        yield from _walk(below if isinstance(below, list) else [], str(queue.get("name")))


def _words(name: str, has: Mapping[str, Any], queue: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key in WORDS:
        if key in queue and (queue[key] or None) != (has.get(key) or None):
            yield _line(name, key.replace("_", " "), has.get(key), queue[key])


def _figures(
    name: str, has: Mapping[str, Any], queue: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for key, default in DEFAULTS.items():
        figures = queue.get(key)
        for gpu_class, value in figures.items() if isinstance(figures, Mapping) else ():
            before = (has.get(key) or {}).get(gpu_class, default)
            if before != value:
                yield _line(name, f"{gpu_class} {key.replace('_', ' ')}", before, value)


def _line(queue: str, what: str, before: Any, after: Any) -> dict[str, Any]:
    return {"queue": queue, "what": what, "before": before, "after": after}


def print_differences(found: Sequence[Mapping[str, Any]]) -> None:
    columns = [
        ("QUEUE", lambda row: row["queue"]),
        ("WHAT", lambda row: row["what"]),
        ("BEFORE", lambda row: _as_cell(row["before"], row["what"])),
        ("AFTER", lambda row: _as_cell(row["after"], row["what"])),
    ]
    table(found, columns, "The file says what is in force.")


def _as_cell(value: Any, what: str) -> str:
    if value is None:
        return "no limit" if what.endswith("limit") else "–"
    return number(value) if isinstance(value, int | float) else str(value)


def _queues(file: IO[str]) -> list[Any]:
    """Raises Fault where the file is none of a tree."""
    body = read_yaml(file)
    queues = body.get("queues") if isinstance(body, Mapping) else None
    if not isinstance(queues, list) or not queues:
        raise Fault(f"{file.name} names no queues.", "Begin it with: queues:")
    return queues
