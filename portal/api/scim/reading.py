"""What a directory sends, brought to the few fields that Weir keeps; the rest is passed over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

PATTERN = re.compile(r'\s*([A-Za-z][\w.]*)\s+eq\s+("(?:[^"\\]|\\.)*")\s*', re.IGNORECASE)
ONE_MEMBER = re.compile(r'members\s*\[\s*value\s+eq\s+("(?:[^"\\]|\\.)*")\s*\]', re.IGNORECASE)
MAIL = re.compile(r"emails\s*\[[^\]]*\]\.value", re.IGNORECASE)
LONGEST = 255
FIELDS = {
    "username": "username", "externalid": "external_id", "name.givenname": "first_name",
    "name.familyname": "last_name", "active": "active",
}  # fmt: skip
"""Attribute, in small letters -> field; attributes have no case."""


class UnreadError(Exception):
    """What can't be read: ``kind`` is the ``scimType`` of RFC 7644."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


def filter_of(text: str, known: Mapping[str, str]) -> tuple[str, str] | None:
    """(lookup, value) of a filter ``attribute eq "value"``; None where there is none."""
    if not text:
        return None
    found = PATTERN.fullmatch(text)
    lookup = known.get(found[1].lower()) if found else None
    if found is None or lookup is None:
        raise UnreadError("invalidFilter", f'Filters are: {", ".join(known)}, each eq "value".')
    return lookup, _quoted(found[2])


def _quoted(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        raise UnreadError("invalidFilter", "That is no value in quotation marks.") from None
    return _text(value, "filter")


def _text(value: object, name: str) -> str:
    """One that a column takes."""
    if value is None:
        return ""
    if not isinstance(value, str) or "\0" in value or len(value) > LONGEST:
        raise UnreadError("invalidValue", f"{name} is a text of up to {LONGEST} characters.")
    return value


def _flag(value: object) -> bool:
    """Some directories write it as text."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise UnreadError("invalidValue", "active is true or false.")
    return value


def body_of(data: object) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise UnreadError("invalidSyntax", "The body is an object of JSON.")
    return data


def user_in(data: object) -> dict[str, Any]:
    """Fields of a whole user, or of a part of one."""
    found: dict[str, Any] = {}
    for name, value in _flat(body_of(data)):
        _read(found, name, value)
    return found


def _flat(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        if name.lower() == "name" and isinstance(value, Mapping):
            yield from ((f"name.{inner}", part) for inner, part in value.items())
        else:
            yield name, value


def _read(found: dict[str, Any], name: str, value: Any) -> None:
    small = name.lower().rpartition(":")[2]
    if small == "emails":
        found["email"] = _mail(value)
    elif MAIL.fullmatch(name):
        found["email"] = _text(value, "emails")
    elif field := FIELDS.get(small):
        found[field] = _flag(value) if field == "active" else _text(value, name)


def _mail(value: object) -> str:
    """The primary one, else the first."""
    listed = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
    listed.sort(key=lambda one: one.get("primary") is not True)
    return _text(listed[0].get("value"), "emails") if listed else ""


def operations(data: object) -> Iterator[tuple[str, str, Any]]:
    """(op, path, value) of a PATCH."""
    listed = next((v for k, v in body_of(data).items() if k.lower() == "operations"), None)
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise UnreadError("invalidSyntax", "Operations are a list of objects.")
    for one in listed:
        op, path = str(one.get("op", "")).lower(), one.get("path") or ""
        if op not in ("add", "replace", "remove") or not isinstance(path, str):
            raise UnreadError("invalidSyntax", "op is add, replace or remove, and path a text.")
        yield op, path, one.get("value")


def user_patch(data: object) -> dict[str, Any]:
    """Fields after all operations; the last of one field counts."""
    found: dict[str, Any] = {}
    for op, path, value in operations(data):
        if not path:
            found |= user_in(value)
        elif path.lower() == "name":
            found |= user_in(
                {"name": value if op != "remove" else {"givenName": "", "familyName": ""}}
            )
        elif op != "remove":
            _read(found, path, value)
        elif path.lower() not in ("active", "username"):
            _read(found, path, [] if path.lower() == "emails" else "")
        else:
            raise UnreadError("mutability", f"{path} can't be removed.")
    return found


def members_in(value: object) -> set[int]:
    """Ids of members as they are listed."""
    listed = value if isinstance(value, list) else [value]
    ids = [one.get("value") if isinstance(one, Mapping) else one for one in listed]
    return {_id(one) for one in ids}


def _id(value: object) -> int:
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) < 18):
        raise UnreadError("invalidValue", f"{text[:40]} is the id of no user.")
    return int(text)


def group_in(data: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in body_of(data).items():
        small = name.lower()
        if small in ("displayname", "externalid"):
            found["name" if small == "displayname" else "external_id"] = _text(value, name)
        elif small == "members":
            found["members"] = members_in(value or [])
    return found


def group_patch(data: object, members: set[int]) -> dict[str, Any]:
    """Fields after all operations on a group that has ``members``."""
    found: dict[str, Any] = {"members": set(members)}
    for op, path, value in operations(data):
        small = path.lower()
        if not path:
            part = group_in(value)
            if op == "add" and "members" in part:
                part["members"] |= found["members"]
            found |= part
        elif small == "members":
            found["members"] = _changed(op, found["members"], value)
        elif one := ONE_MEMBER.fullmatch(path):
            if op == "remove":
                found["members"] -= {_id(_quoted(one[1]))}
        elif op != "remove" or small == "externalid":
            found |= group_in({path: None if op == "remove" else value})
        elif small == "displayname":
            raise UnreadError("mutability", "A group keeps a name.")
    return found


def _changed(op: str, members: set[int], value: Any) -> set[int]:
    if op == "replace":
        return members_in(value or [])
    if op == "add":
        return members | members_in(value or [])
    return members - members_in(value) if value else set()
