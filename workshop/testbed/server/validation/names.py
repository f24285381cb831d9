"""Names, labels, annotations and owner references."""

from __future__ import annotations

import re
from functools import lru_cache

from workshop.testbed.server.kinds.errors import (
    Cause,
    forbidden_field,
    immutable,
    invalid_value,
    required,
)
from workshop.testbed.server.kinds.resources import Json

_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")

LABEL_HINT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_HINT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY_HINT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_HINT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def is_dns_label(text: str) -> bool:
    """Return whether `text` is an RFC 1123 label."""
    return len(text) <= 63 and _LABEL.match(text) is not None


def name_faults(kind: str, name: str) -> list[Cause]:
    """Return what is wrong with an object's name."""
    field = "metadata.name"
    if not name:
        return [required(field, "name or generateName is required")]
    if kind == "Namespace":
        return [] if is_dns_label(name) else [invalid_value(field, name, LABEL_HINT)]
    if kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"):
        return [] if "/" not in name and "%" not in name else [
            invalid_value(field, name, "may not contain '/' or '%'")
        ]  # fmt: skip
    if len(name) > 253:
        return [invalid_value(field, name, "must be no more than 253 characters")]
    return [] if _SUBDOMAIN.match(name) else [invalid_value(field, name, SUBDOMAIN_HINT)]


@lru_cache(maxsize=4096)
def key_fault(key: str) -> str | None:
    """Return what is wrong with the key of a label or annotation, or None."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.match(prefix)):
        return f"prefix part {SUBDOMAIN_HINT}"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    return None if _QUALIFIED.match(name) else KEY_HINT


@lru_cache(maxsize=4096)
def value_fault(value: str) -> str | None:
    """Return what is wrong with a label's value, or None."""
    if len(value) > 63:
        return "must be no more than 63 characters"
    return None if _VALUE.match(value) else VALUE_HINT


def labels_faults(labels: Json | None, field: str) -> list[Cause]:
    """Return what is wrong with a map of labels."""
    found = []
    for key, value in (labels or {}).items():
        if fault := key_fault(key):
            found.append(invalid_value(field, key, fault))
        if fault := value_fault(value):
            found.append(invalid_value(field, value, fault))
    return found


def metadata_faults(body: Json) -> list[Cause]:
    """Return what is wrong with labels, annotations, finalizers and owners."""
    metadata = body["metadata"]
    found = labels_faults(metadata.get("labels"), "metadata.labels")
    for key in metadata.get("annotations") or ():
        if fault := key_fault(key.lower()):
            found.append(invalid_value("metadata.annotations", key, fault))
    for finalizer in metadata.get("finalizers") or ():
        if fault := key_fault(finalizer):
            found.append(invalid_value("metadata.finalizers", finalizer, fault))
    return found + _owner_faults(metadata.get("ownerReferences") or [])


def _owner_faults(references: list[Json]) -> list[Cause]:
    found = []
    for index, reference in enumerate(references):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(key):
                found.append(required(f"metadata.ownerReferences[{index}].{key}"))
    if sum(bool(reference.get("controller")) for reference in references) > 1:
        hint = "Only one reference can have Controller set to true"
        found.append(invalid_value("metadata.ownerReferences", "controller", hint))
    return found


def metadata_update_faults(new: Json, old: Json) -> list[Cause]:
    """Return what may not change in the metadata of an existing object."""
    ours, theirs = new["metadata"], old["metadata"]
    found = [
        immutable(f"metadata.{key}", ours.get(key))
        for key in ("name", "namespace", "uid", "creationTimestamp")
        if ours.get(key) != theirs.get(key)
    ]
    if theirs.get("deletionTimestamp"):
        added = set(ours.get("finalizers") or ()) - set(theirs.get("finalizers") or ())
        if added:
            hint = "no new finalizers can be added if the object is being deleted"
            found.append(forbidden_field("metadata.finalizers", f"{hint}, found {sorted(added)}"))
    return found
