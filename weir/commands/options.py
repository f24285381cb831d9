"""What commands share: the context they are given, files they read, questions they ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, ClassVar, Protocol, TypeVar

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


class LengthOfTime(click.ParamType[int]):
    """'6h', '1 d 12 h', '30min' as whole seconds, of at least ``least``; a bare number is seconds."""

    name = "TIME"
    UNITS_S: ClassVar[Mapping[str, int]] = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}
    PART = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|m|h|d)?(?: |$|(?=\d))", re.ASCII)

    def __init__(self, *, least: int = 1) -> None:
        self.least = least

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        text = value.strip().lower()
        parts = self.PART.findall(text)
        if not parts or self.PART.sub("", text):
            self.fail(f"{value!r} is no length of time: write 6h, 30min or 1d12h.", param, context)
        seconds = round(sum(float(n) * self.UNITS_S[unit or "s"] for n, unit in parts))
        if seconds < self.least:
            self.fail(f"{value!r} is too short.", param, context)
        return seconds
