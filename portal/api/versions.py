"""Versions of what the API tells: an ETag that knows its fields, and If-Match.

The tag holds a digest of the whole and a short one of each field, so that a mismatch can say what changed
and nothing is kept of who read what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from hashlib import sha256
from typing import Any

from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer

from scheduling.services.errors import ServiceError

WHOLE, PART = 16, 3
"""Hexadecimal digits of the digests."""
TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]*)"')
"""A proxy that compresses an answer marks its tag as weak, and what it names is the same."""


class VersionMismatch(APIException):
    """``changed`` are names of fields, none where it is not known which."""

    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "changed_since_read"
    remedy = "Read it again, look at what is there now, and send your change with the ETag of that answer."

    def __init__(self, changed: list[str]) -> None:
        what = ", ".join(changed)
        super().__init__(
            f"It was changed since you read it: {what}."
            if changed
            else "It is not what you read: it was changed since."
        )
        self.fields = {name: ["This was changed since you read it."] for name in changed}


def fields_of(data: Any, apart: Set[str] = frozenset()) -> dict[str, str]:
    """Field -> what it says, as text that is the same for the same. Rows of a list go by their ``field``."""
    body = json.loads(JSONRenderer().render(data))
    if isinstance(body, list):
        body = {row["field"]: row for row in body}
    return {
        name: json.dumps(value, sort_keys=True)
        for name, value in sorted(body.items())
        if name not in apart
    }


def etag(fields: Mapping[str, str]) -> str:
    return f'"{_digest(json.dumps(fields), WHOLE)}.{"".join(_parts(fields))}"'


def check(wanted: str, fields: Mapping[str, str]) -> None:
    """Raises VersionMismatch where none of the tags in ``wanted`` is that of ``fields``, and ServiceError
    where it holds no tags."""
    if wanted.strip() == "*":
        return
    tags = TAG.findall(wanted)
    if not tags:
        raise ServiceError(
            "bad_if_match",
            "The If-Match header holds no ETag.",
            "Send the ETag of your last GET as it stands, with its quotes.",
        )
    if etag(fields).strip('"') not in tags:
        raise VersionMismatch(_changed(tags[0], fields))


def _changed(tag: str, fields: Mapping[str, str]) -> list[str]:
    """Names of the fields whose digest is another; none where the tag is of other fields."""
    _, _, parts = tag.partition(".")
    if len(parts) != PART * len(fields):
        return []
    before = (parts[i : i + PART] for i in range(0, len(parts), PART))
    pairs = zip(fields, before, _parts(fields), strict=True)
    return [name for name, then, now in pairs if then != now]


def _parts(fields: Mapping[str, str]) -> list[str]:
    return [_digest(f"{name}={value}", PART) for name, value in fields.items()]


def _digest(text: str, digits: int) -> str:
    return sha256(text.encode()).hexdigest()[:digits]
