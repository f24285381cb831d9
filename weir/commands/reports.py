"""The reports of the portal, as tables or as documents."""

from __future__ import annotations

import csv
import re
import sys
from operator import itemgetter
from typing import Any

import click

from weir.commands.options import Options, printed
from weir.printing import duration, facts, moment, number, safe, table

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT")
SMALL = 10
EXPORTS = ("focus",)
"""Tables that are made only where they are named."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "--range",
    "span",
    default="14d",
    show_default=True,
    help="Such as 7d, 30d, this-month, last-month.",
)
@click.option("--from", "start", help="A day or an instant; takes the place of --range.")
@click.option("--to", "end", help="A day or an instant.")
@click.option("--class", "classes", multiple=True, help="GPU classes; else all.")
@click.option("--queue", help="With everything below it.")
@click.option("--user")
@click.option("--type", "kind", help="Type of workload.")
@click.option(
    "--table",
    "wanted",
    help="One table of the report; else its figures and the names of its tables. Of showback also focus.",
)
@click.option("--csv", "as_csv", is_flag=True, help="The table of --table as CSV.")
@click.pass_obj
def report(given: Options, /, name: str | None, span: str, start: str | None, end: str | None,
           classes: tuple[str, ...], kind: str | None, wanted: str | None,
           as_csv: bool, **query: Any) -> None:  # fmt: skip
    """A report over a range, such as utilization, waits or preemptions; without NAME: which there are."""
    api = given.api()
    if name is None:
        _list(given, api.get(api.within("reports")))
        return
    if as_csv and not wanted:
        raise click.UsageError("--csv writes one table: name it by --table.")
    query |= {"class": list(classes), "type": kind, "from": start, "to": end}
    if not start:
        query["range"] = span
    if as_csv or wanted in EXPORTS:
        query["table"] = wanted
    body = api.get(api.within(f"reports/{name}"), **query)
    if as_csv and wanted:
        _write(body[wanted])
        return
    if printed(given, body):
        return
    tables = {key: rows for key, rows in body.items() if isinstance(rows, list)}
    if wanted is None:
        _sum_up(body, tables)
    elif wanted in tables:
        _print(tables[wanted])
    else:
        raise click.UsageError(f"--table is one of {', '.join(tables)}.")


def _list(given: Options, reports: list[dict[str, Any]]) -> None:
    if not printed(given, reports):
        table(
            reports,
            [("NAME", itemgetter("name")), ("WHAT IT ANSWERS", itemgetter("about"))],
            "There are none.",
        )


def _sum_up(body: dict[str, Any], tables: dict[str, Any]) -> None:
    facts(_flat(body))
    click.echo(f"\n--table NAME shows one of: {', '.join(tables)}")


def _flat(body: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in body.items():
        name = f"{above}{_label(key)}"
        if isinstance(value, dict):
            found += _flat(value, f"{name}, ")
        elif not isinstance(value, list):
            found.append((name, _shown(key, value)))
    return found


def _print(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0]) if rows else []
    table(rows, [(_label(name).upper(), _of(name)) for name in names], "It has no rows.")


def _label(field: str) -> str:
    return field.removesuffix("_s").replace("_", " ")


def _shown(field: str, value: Any) -> Any:
    """In the units of people: what it is, the API's name of the ``field`` says."""
    if isinstance(value, str) and INSTANT.match(value):
        return moment(value)
    if isinstance(value, dict | list):
        return safe(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    if field.endswith("_s"):
        return duration(value)
    if "share" in field:
        return f"{100 * value:.1f} %"
    return (
        number(value)
        if isinstance(value, int) or abs(value) >= SMALL
        else f"{value:.2f}".removesuffix(".00")
    )


def _write(rows: list[dict[str, Any]]) -> None:
    """Text that a spreadsheet would take for a formula is escaped, as in the portal's own files."""
    out = csv.writer(sys.stdout)
    if rows:
        out.writerow(rows[0])
    out.writerows([_cell(value) for value in row.values()] for row in rows)


def _cell(value: Any) -> Any:
    escaped = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if escaped else value


def _of(name: str) -> Any:
    return lambda row: _shown(name, row[name])
