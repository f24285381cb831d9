"""What adapts by itself: read, switched, pinned."""

from __future__ import annotations

from typing import Any

import click

from weir.commands.options import Options, printed
from weir.printing import duration, moment, table


@click.group(invoke_without_command=True)
@click.pass_context
def adapting(ctx: click.Context) -> None:
    """Parameters of the policy that follow feedback: their values, bounds and evidence."""
    if ctx.invoked_subcommand is None:
        given: Options = ctx.obj
        api = given.api()
        _show(given, api.get(api.within("adaptation")))


def _switch(name: str, is_on: bool, text: str) -> None:
    def act(given: Options) -> None:
        api = given.api()
        _show(given, api.put(api.within("adaptation"), {"is_on": is_on}))

    adapting.command(name, help=text)(click.pass_obj(act))


def _pin(verb: str, is_pinned: bool, text: str) -> None:
    def act(given: Options, name: str) -> None:
        api = given.api()
        found = api.put(api.within(f"adaptation/parameters/{name}"), {"is_pinned": is_pinned})
        if not printed(given, found):
            state = "pinned" if found["is_pinned"] else "follows feedback"
            click.echo(f"{found['title']}: {state}")

    adapting.command(verb, help=text)(click.argument("name")(click.pass_obj(act)))


_switch("on", True, "Let the parameters that are not pinned follow feedback.")
_switch("off", False, "Leave every parameter where it is.")
_pin("pin", True, "Keep the parameter NAME where it is.")
_pin("let-go", False, "Let the parameter NAME follow feedback again.")


def _show(given: Options, found: dict[str, Any]) -> None:
    if printed(given, found):
        return
    click.echo(f"Adaptation is {'on' if found['is_on'] else 'off'}.")
    columns = [
        ("NAME", lambda row: row["name"]),
        ("NOW", lambda row: _value(row, "value")),
        ("BOUNDS", _bounds),
        ("PINNED", lambda row: "yes" if row["is_pinned"] else ""),
        ("CHANGED", lambda row: moment(row["changed_at"]) if row["changed_at"] else "never"),
        ("EVIDENCE", lambda row: row["evidence"]),
    ]
    table(found["parameters"], columns, "Nothing adapts.")


def _bounds(row: dict[str, Any]) -> str:
    return f"{_value(row, 'least')} to {_value(row, 'most')}"


def _value(row: dict[str, Any], key: str) -> str:
    """Seconds as people read them, other numbers as they are."""
    return duration(row[key]) if row["unit"] == "s" else f"{row[key]:g}"
