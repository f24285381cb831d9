"""The question as it is put together: changes in the address, one more from a small form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from scheduling.services.errors import ServiceError
from scheduling.services.studies.whatif.kinds import ChangeError

Json = dict[str, Any]
PARAMETER = "change"


def changes_in(query: QueryDict) -> list[Json]:
    """The changes of the address. Raises ChangeError for one that is no JSON object."""
    return objects_in(query.getlist(PARAMETER), "changes")


def objects_in(texts: Iterable[str], name: str) -> list[Json]:
    """Each text as a JSON object. Raises ChangeError at ``name.0`` for one that is none."""
    found = []
    for i, text in enumerate(texts):
        try:
            one = json.loads(text)
        except (ValueError, RecursionError):
            one = None
        if not isinstance(one, dict):
            raise ChangeError(f"{name}.{i}", "That cannot be read.", "Add it again below.")
        found.append(one)
    return found


def as_text(change: Json) -> str:
    return json.dumps(change, separators=(",", ":"))


def as_query(changes: list[Json], **more: str) -> str:
    pairs = [(PARAMETER, as_text(one)) for one in changes]
    return urlencode([*pairs, *more.items()])


def added(query: QueryDict) -> Json:
    """The change that the small form describes. Raises ChangeError."""
    kind = query.get("add", "")
    fields = FIELDS.get(kind)
    if fields is None:
        raise ChangeError(
            "add", "That is no kind of change.", f"Choose one of {', '.join(FIELDS)}."
        )
    change: Json = {"kind": kind}
    for name, read in fields.items():
        text = query.get(name, "").strip()
        if text:
            change[name] = read(text, name)
    return change


def _text(text: str, _name: str) -> str:
    return text


def _texts(text: str, _name: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str, name: str) -> float | int | None:
    if text.lower() in ("all", "none", "no limit"):
        return None
    try:
        value = float(text)
    except ValueError:
        raise ChangeError(name, "That is no number.", "Write digits, as 4 or 0.5.") from None
    return int(value) if value == int(value) else value


def _hours(text: str, name: str) -> int:
    hours = _number(text, name)
    if hours is None:
        raise ChangeError(name, "That is no number of hours.", "Write digits, as 14.")
    return round(hours * 3600)


def _value(text: str, name: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return _number(text, name)
    except ServiceError:
        return text


Reader = Callable[[str, str], Any]
FIELDS: Mapping[str, Mapping[str, Reader]] = {
    "quota": {
        "queue": _text,
        "gpu_class": _text,
        "nominal_gpus": _number,
        "borrowing_limit_gpus": _number,
        "lending_limit_gpus": _number,
        "weight": _number,
    },
    "capacity": {"gpu_class": _text, "nodes": _number},
    "arrival": {
        "queue": _text,
        "gpu_classes": _texts,
        "gpus_per_pod": _number,
        "pods_min": _number,
        "pods_max": _number,
        "run_s": _hours,
    },
    "priority": {"priority_class": _text, "value": _number, "max_wait_s": _hours},
    "policy": {"setting": _text, "value": _value},
    "queue": {
        "queue": _text,
        "parent": _text,
        "priority": _number,
        "max_running": _number,
        "sharing": _text,
    },
    "class": {"gpu_class": _text, "exchange_rate": _number},
}
