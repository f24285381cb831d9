"""What commands share: the context they are given, files they read, questions they ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Protocol, TypeVar

import click
import yaml

from weir.api import Api
from weir.faults import Fault
from weir.printing import TABLE, Column, Row, document, table

F = TypeVar("F", bound=Callable[..., Any])
MOST_BYTES = 2 << 20


class Options(Protocol):
    """``form`` is how to print."""

    form: str

    def api(self) -> Api: ...


def printed(given: Options, data: Any) -> bool:
    """Whether a script reads: ``data`` is printed as it came, and there is nothing left to tell."""
    if given.form == TABLE:
        return False
    document(data, given.form)
    return True


def listed(given: Options, rows: Sequence[Row], columns: Sequence[Column], empty: str) -> None:
    """Rows as they came for a script, else as a table."""
    if not printed(given, rows):
        table(rows, columns, empty)


def set_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of it."""
    return {name: value for name, value in options.items() if value is not None}


def read_text(file: IO[str]) -> str:
    """Raises Fault where it is too large, or no text."""
    try:
        text = file.read(MOST_BYTES + 1)
    except UnicodeDecodeError as error:
        raise Fault(f"{file.name} is no text.", "Name a text file in UTF-8.") from error
    if len(text) > MOST_BYTES:
        raise Fault(f"{file.name} is larger than {MOST_BYTES >> 20} MiB.")
    return text


def read_yaml(file: IO[str]) -> Any:
    """One document. Raises Fault that names file and line."""
    return _parsed(file, yaml.safe_load)


def read_yamls(file: IO[str]) -> list[Any]:
    """Every document. Raises Fault that names file and line."""
    return list(_parsed(file, lambda text: list(yaml.safe_load_all(text))))


def _parsed(file: IO[str], parse: Callable[[str], Any]) -> Any:
    try:
        return parse(read_text(file))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file.name}:{mark.line + 1}" if mark else file.name
        said = getattr(error, "problem", None) or "it is no YAML"
        raise Fault(f"{where}: {said}.") from error


def sure(question: str, *, yes: bool) -> None:
    """Ends the command where the person does not confirm."""
    if not yes:
        click.confirm(question, abort=True, err=True)


YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
