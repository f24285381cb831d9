"""The snapshot document: a mapping (read from YAML or JSON) to and from the engine's Snapshot.

Its JSON Schema is docs/snapshot.schema.json.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from scheduling.engine import model as m
from scheduling.engine.document.checks import faults_of
from scheduling.engine.document.roles import fill_in
from scheduling.engine.document.rows import PARTS, read, write
from scheduling.engine.document.schema import SnapshotDoc
from scheduling.engine.validate import check

MOST_FAULTS = 20
"""After so many rows with faults nobody reads on."""


def parse(document: Any) -> m.Snapshot:
    """The Snapshot that ``document`` (what a YAML or JSON reader returned) describes.

    Raises SnapshotError with one fault per broken place, of the first MOST_FAULTS rows that have any:
    unknown keys, wrong types and ranges, names that stand twice or refer to nothing, and states that
    contradict themselves.
    """
    faults: list[m.Fault] = []
    doc = _doc(document, faults)
    faults = faults or fill_in(doc) or faults_of(doc)
    if faults:
        raise m.SnapshotError(faults)
    snapshot = read(doc)
    check(snapshot)
    return snapshot


def _doc(document: Any, faults: list[m.Fault]) -> SnapshotDoc:
    """``document`` by its keys, types and ranges; what is wrong with it goes to ``faults``.

    Row by row: pydantic has a fault for each item of a list, however long.
    """
    parts = document if isinstance(document, dict) else {}
    found = {
        part: _rows(part, parts[part], faults)
        for part in PARTS
        if isinstance(parts.get(part), list)
    }
    rest = {key: value for key, value in parts.items() if key not in found}
    try:
        head = SnapshotDoc.model_validate(rest if parts else document)
    except ValidationError as error:
        faults[:0] = [_fault(line) for line in error.errors()]
        return SnapshotDoc(now=datetime(2000, 1, 1, tzinfo=UTC))
    return head.model_copy(update=found)


def _rows(part: str, found: list[Any], faults: list[m.Fault]) -> list[BaseModel]:
    made: list[BaseModel] = []
    for number, row in enumerate(found):
        if len(faults) >= MOST_FAULTS:
            break
        try:
            made.append(PARTS[part][0].model_validate(row))
        except ValidationError as error:
            faults += [_fault(line, (part, number)) for line in error.errors()]
    return made


def schema() -> dict[str, Any]:
    """JSON Schema of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weir snapshot",
        **SnapshotDoc.model_json_schema(),
    }


def dump(snapshot: m.Snapshot) -> dict[str, Any]:
    """The document of ``snapshot``, defaults left out: ``parse(dump(s)) == s``.

    Of a live cluster's oddities, what a file may not say comes at its bound (see rows.py).
    """
    return write(snapshot).model_dump(mode="json", exclude_defaults=True)


def _fault(line: Any, at: tuple[str | int, ...] = ()) -> m.Fault:
    steps = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in (*at, *line["loc"]))
    found = None if line["type"] == "missing" else line["input"]
    return m.Fault(
        "".join(steps).lstrip(".") or "document",
        _found(found),
        _expected(line),
        REMEDIES.get(line["type"], "'manage.py plan --schema' prints what may stand there"),
    )


def _found(value: Any) -> str:
    if value is None:
        return "nothing"
    return str(value) if isinstance(value, date) else repr(value)[:80]


EXPECTED = {
    "missing": "a value: it has no default",
    "extra_forbidden": "no such key",
    "invalid_key": "a key that is text",
    "model_type": "keys with values",
    "dict_type": "keys with values",
    "list_type": "a list",
    "string_type": "text",
    "string_unicode": "text",
    "string_too_short": "a name",
    "string_too_long": "at most {max_length} characters",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "value_error": "{error}",
}
"""What belongs in the place of what pydantic found, by its type of error."""


REMEDIES = {"missing": "write it there", "extra_forbidden": "correct its spelling or take it out"}


def _expected(line: Any) -> str:
    if line["type"].startswith(("datetime_", "date_", "timezone_")):
        return "a time, as 2026-01-05T10:00:00Z"
    text = EXPECTED.get(line["type"])
    context = {name: _plain(value) for name, value in line.get("ctx", {}).items()}
    return text.format(**context) if text else str(line["msg"])


def _plain(value: Any) -> str:
    """A bound as people write it; anything else as it is."""
    return f"{value:,}".removesuffix(".0") if isinstance(value, int | float) else str(value)
