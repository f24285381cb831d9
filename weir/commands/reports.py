"""The reports of the portal, as tables or as documents."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import click

from weir.commands.options import Given, printed
from weir.printing import facts, number, safe, table


@click.command()
@click.argument("name", required=False)
@click.option("--range", "span", default="14d", show_default=True, help="Such as 7d, 30d.")
@click.option("--from", "start", help="A day or an instant; takes the place of --range.")
@click.option("--to", "end", help="A day or an instant.")
@click.option("--class", "classes", multiple=True, help="GPU classes; else all.")
@click.option("--queue", help="With everything below it.")
@click.option("--user")
@click.option("--type", "kind", help="Type of workload.")
@click.option(
    "--table",
    "wanted",
    help="One table of the report; else its figures and the names of its tables.",
)
@click.pass_obj
def report(given: Given, /, name: str | None, span: str, start: str | None, end: str | None,
           classes: tuple[str, ...], kind: str | None, wanted: str | None, **query: Any) -> None:  # fmt: skip
    """A report over a range, such as utilization, waits or preemptions; without NAME: which there are."""
    api = given.api()
    if name is None:
        _list(given, api.get(api.within("reports")))
        return
    query |= {"class": list(classes), "type": kind, "from": start, "to": end}
    if not start:
        query["range"] = span
    told = api.get(api.within(f"reports/{name}"), **query)
    if printed(given, told):
        return
    tables = {key: rows for key, rows in told.items() if isinstance(rows, list)}
    if wanted is None:
        _sum_up(told, tables)
    elif wanted in tables:
        _print(tables[wanted])
    else:
        raise click.UsageError(f"--table is one of {', '.join(tables)}.")


def _list(given: Given, reports: list[dict[str, Any]]) -> None:
    if not printed(given, reports):
        table(
            reports,
            [("NAME", itemgetter("name")), ("WHAT IT ANSWERS", itemgetter("about"))],
            "There are none.",
        )


def _sum_up(told: dict[str, Any], tables: dict[str, Any]) -> None:
    facts(_flat(told))
    click.echo(f"\n--table NAME shows one of: {', '.join(tables)}")


def _flat(told: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in told.items():
        name = f"{above}{key}".replace("_", " ")
        if isinstance(value, dict):
            found += _flat(value, f"{name}, ")
        elif not isinstance(value, list):
            found.append((name, number(value) if isinstance(value, float) else value))
    return found


def _print(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0]) if rows else []
    table(rows, [(name.upper().replace("_", " "), _of(name)) for name in names], "It has no rows.")


def _of(name: str) -> Any:
    return lambda row: safe(row[name]) if isinstance(row[name], dict | list) else row[name]
