"""The snapshot document: a mapping (read from YAML or JSON) to and from the engine's Snapshot.

Its JSON Schema is docs/snapshot.schema.json.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import ValidationError

from scheduling.engine import document_rows as rows
from scheduling.engine import model as m
from scheduling.engine.document_checks import faults_of
from scheduling.engine.document_schema import SnapshotDoc
from scheduling.engine.validate import check


def parse(document: Any) -> m.Snapshot:
    """The Snapshot that ``document`` (what a YAML or JSON reader returned) describes.

    Raises SnapshotError with one fault per broken place: unknown keys, wrong types and ranges,
    names that stand twice or refer to nothing, and states that contradict themselves.
    """
    try:
        doc = SnapshotDoc.model_validate(document)
    except ValidationError as error:
        raise m.SnapshotError([_fault(line) for line in error.errors()]) from None
    faults = faults_of(doc)
    if faults:
        raise m.SnapshotError(faults)
    snapshot = rows.read(doc)
    check(snapshot)
    return snapshot


def schema() -> dict[str, Any]:
    """JSON Schema of the document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weir snapshot",
        **SnapshotDoc.model_json_schema(),
    }


def dump(snapshot: m.Snapshot) -> dict[str, Any]:
    """The document of ``snapshot``: ``parse(dump(s)) == s``. Defaults are left out."""
    return rows.write(snapshot).model_dump(mode="json", exclude_defaults=True)


def _fault(line: Any) -> tuple[str, str, str]:
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in line["loc"]).lstrip(".")
    found = None if line["type"] == "missing" else line["input"]
    return path or "document", _found(found), _expected(line)


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


def _expected(line: Any) -> str:
    if line["type"].startswith(("datetime_", "date_", "timezone_")):
        return "a time, as 2026-01-05T10:00:00Z"
    text = EXPECTED.get(line["type"])
    told = {name: _plain(value) for name, value in line.get("ctx", {}).items()}
    return text.format(**told) if text else str(line["msg"])


def _plain(value: Any) -> str:
    """A bound as people write it; anything else as it is."""
    return f"{value:,}".removesuffix(".0") if isinstance(value, int | float) else str(value)
