"""The snapshot document: a mapping (read from YAML or JSON) to and from the engine's Snapshot.

Its JSON Schema is docs/snapshot.schema.json.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from scheduling.engine import document_rows as rows
from scheduling.engine import model as m
from scheduling.engine.document_checks import faults_of
from scheduling.engine.document_schema import SnapshotDoc


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
    return rows.read(doc)


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
    found = "nothing" if line["type"] == "missing" else repr(line["input"])[:80]
    if line["type"] == "extra_forbidden":
        return path, found, "no such key"
    return path or "document", found, line["msg"].removeprefix("Value error, ")
