"""Manifests as text: read what was pasted, write what will be created, mark Weir's own lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from django.core.exceptions import ValidationError

from portal.boundary.structure import MalformedError, from_yaml

LONGEST = 64 * 1024
"""Characters of a pasted manifest."""
OWN_KEYS = ("suspend:",)
OWN_PREFIX = "weir.dev/"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """``indent`` and ``key`` are set apart so that keys can be pale; ``own`` marks Weir's lines."""

    indent: str
    key: str
    value: str
    own: bool


def read(text: str) -> Json:
    """The one object that ``text`` describes, YAML or JSON.

    Raises ValidationError that says line and column, or what else is wrong.
    """
    if len(text) > LONGEST:
        raise ValidationError(f"This is longer than {LONGEST // 1024} KiB. Paste one object.")
    try:
        found = from_yaml(text)
    except MalformedError as error:
        raise ValidationError(str(error)) from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise ValidationError(
            "This is not one object. Paste what kubectl apply takes for one workload."
        )
    return found[0]


def write(manifest: Mapping[str, Any]) -> str:
    """``manifest`` as YAML, in its own order."""
    return yaml.dump(dict(manifest), Dumper=_OneLineLists, sort_keys=False, width=1000)


class _OneLineLists(yaml.SafeDumper):
    """Lists of plain values stand on one line, as people write commands; nothing is aliased."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_list(self, data: Iterable[Any]) -> Any:
        plain = all(not isinstance(item, (dict, list)) for item in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", list(data), flow_style=plain)


_OneLineLists.add_representer(list, _OneLineLists.represent_list)


def lines(text: str) -> list[ManifestLine]:
    """``text`` (from ``write``) line by line, marked for reading."""
    return list(_lines(text))


def _lines(text: str) -> Iterator[ManifestLine]:
    for line in text.splitlines():
        body = line.lstrip(" ")
        key, colon, value = body.partition(":")
        yield ManifestLine(
            indent=" " * (len(line) - len(body)),
            key=f"{key}{colon}" if colon else "",
            value=value if colon else body,
            own=body.startswith((OWN_PREFIX, *OWN_KEYS)),
        )
