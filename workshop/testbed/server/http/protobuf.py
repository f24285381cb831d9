"""Reading Kubernetes' protobuf, which kubectl's `create job`, `create namespace` … insist on.

Only the messages such commands send are described; a field outside of them is refused rather
than lost. Answers are JSON, which every client that sends protobuf reads as well.
The numbers are those of the `generated.proto` files of Kubernetes' published API.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workshop.testbed.server.kinds.clock import micro_stamp
from workshop.testbed.server.kinds.errors import ApiError, bad_request
from workshop.testbed.server.kinds.resources import Json

MAGIC = b"k8s\x00"

Field = tuple[str, str]
"""Name in JSON and type. Types: `text`, `int` (kept if zero), `bool` (kept), `flag` (left out if
false), `labels`, `quantities`, `micro` (time), `either` (number or text), `skip`, or the name of
a message. A `*` in front: repeated."""

_META: dict[int, Field] = {1: ("metadata", "ObjectMeta")}
MESSAGES: dict[str, dict[int, Field]] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes"), 3: ("", "skip"), 4: ("", "skip")},
    "TypeMeta": {1: ("apiVersion", "text"), 2: ("kind", "text")},
    "ObjectMeta": {
        1: ("name", "text"), 2: ("generateName", "text"), 3: ("namespace", "text"),
        4: ("", "skip"), 5: ("uid", "text"), 6: ("resourceVersion", "text"), 7: ("", "skip"),
        8: ("", "skip"), 11: ("labels", "labels"), 12: ("annotations", "labels"),
        13: ("ownerReferences", "*OwnerReference"), 14: ("finalizers", "*text"), 17: ("", "skip"),
    },
    "OwnerReference": {
        1: ("kind", "text"), 3: ("name", "text"), 4: ("uid", "text"), 5: ("apiVersion", "text"),
        6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "LabelSelector": {1: ("matchLabels", "labels"), 2: ("matchExpressions", "*Requirement")},
    "Requirement": {1: ("key", "text"), 2: ("operator", "text"), 3: ("values", "*text")},
    "Namespace": {**_META, 2: ("spec", "NamespaceSpec"), 3: ("", "skip")},
    "NamespaceSpec": {1: ("finalizers", "*text")},
    "ConfigMap": {**_META, 2: ("data", "labels"), 4: ("immutable", "bool")},
    "ServiceAccount": {**_META},
    "PriorityClass": {
        **_META, 2: ("value", "int"), 3: ("globalDefault", "flag"), 4: ("description", "text"),
        5: ("preemptionPolicy", "text"),
    },
    "ResourceQuota": {**_META, 2: ("spec", "ResourceQuotaSpec"), 3: ("", "skip")},
    "ResourceQuotaSpec": {1: ("hard", "quantities"), 2: ("scopes", "*text")},
    "PodDisruptionBudget": {**_META, 2: ("spec", "BudgetSpec"), 3: ("", "skip")},
    "BudgetSpec": {
        1: ("minAvailable", "either"), 2: ("selector", "LabelSelector"),
        3: ("maxUnavailable", "either"),
    },
    "Lease": {**_META, 2: ("spec", "LeaseSpec")},
    "LeaseSpec": {
        1: ("holderIdentity", "text"), 2: ("leaseDurationSeconds", "int"),
        3: ("acquireTime", "micro"), 4: ("renewTime", "micro"), 5: ("leaseTransitions", "int"),
    },
    "Role": {**_META, 2: ("rules", "*PolicyRule")},
    "PolicyRule": {
        1: ("verbs", "*text"), 2: ("apiGroups", "*text"), 3: ("resources", "*text"),
        4: ("resourceNames", "*text"), 5: ("nonResourceURLs", "*text"),
    },
    "RoleBinding": {**_META, 2: ("subjects", "*Subject"), 3: ("roleRef", "RoleRef")},
    "Subject": {
        1: ("kind", "text"), 2: ("apiGroup", "text"), 3: ("name", "text"), 4: ("namespace", "text"),
    },
    "RoleRef": {1: ("apiGroup", "text"), 2: ("kind", "text"), 3: ("name", "text")},
    "Eviction": {**_META, 2: ("deleteOptions", "DeleteOptions")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"), 2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"), 4: ("propagationPolicy", "text"), 5: ("dryRun", "*text"),
    },
    "Preconditions": {1: ("uid", "text"), 2: ("resourceVersion", "text")},
    "Job": {**_META, 2: ("spec", "JobSpec"), 3: ("", "skip")},
    "JobSpec": {
        1: ("parallelism", "int"), 2: ("completions", "int"), 3: ("activeDeadlineSeconds", "int"),
        4: ("selector", "LabelSelector"), 5: ("manualSelector", "bool"),
        6: ("template", "PodTemplateSpec"), 7: ("backoffLimit", "int"),
        8: ("ttlSecondsAfterFinished", "int"), 9: ("completionMode", "text"),
        10: ("suspend", "bool"), 14: ("podReplacementPolicy", "text"),
    },
    "PodTemplateSpec": {**_META, 2: ("spec", "PodSpec")},
    "Pod": {**_META, 2: ("spec", "PodSpec"), 3: ("", "skip")},
    "PodSpec": {
        2: ("containers", "*Container"), 3: ("restartPolicy", "text"),
        4: ("terminationGracePeriodSeconds", "int"), 5: ("activeDeadlineSeconds", "int"),
        6: ("dnsPolicy", "text"), 7: ("nodeSelector", "labels"), 8: ("serviceAccountName", "text"),
        9: ("serviceAccount", "text"), 10: ("nodeName", "text"), 11: ("hostNetwork", "flag"),
        12: ("hostPID", "flag"), 13: ("hostIPC", "flag"), 14: ("securityContext", "Empty"),
        16: ("hostname", "text"), 17: ("subdomain", "text"), 19: ("schedulerName", "text"),
        22: ("tolerations", "*Toleration"), 24: ("priorityClassName", "text"), 25: ("priority", "int"),
    },
    "Empty": {},
    "Toleration": {
        1: ("key", "text"), 2: ("operator", "text"), 3: ("value", "text"), 4: ("effect", "text"),
        5: ("tolerationSeconds", "int"),
    },
    "Container": {
        1: ("name", "text"), 2: ("image", "text"), 3: ("command", "*text"), 4: ("args", "*text"),
        5: ("workingDir", "text"), 7: ("env", "*EnvVar"), 8: ("resources", "Resources"),
        13: ("terminationMessagePath", "text"), 14: ("imagePullPolicy", "text"),
        16: ("stdin", "flag"), 17: ("stdinOnce", "flag"), 18: ("tty", "flag"),
        20: ("terminationMessagePolicy", "text"),
    },
    "EnvVar": {1: ("name", "text"), 2: ("value", "text")},
    "Resources": {1: ("limits", "quantities"), 2: ("requests", "quantities")},
}  # fmt: skip


def decode(data: bytes) -> Json:
    """Return the object in a protobuf body.

    Raises ApiError: 400 if it cannot be read, 415 for a kind or field that is not described.
    """
    if not data.startswith(MAGIC):
        raise bad_request("the body is no Kubernetes protobuf: it does not begin with k8s\\0")
    try:
        envelope = _message("Unknown", data[len(MAGIC) :])
        kind = envelope["typeMeta"].get("kind", "")
        return {**envelope["typeMeta"], **_message(kind, envelope.get("raw", b""))}
    except (IndexError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise bad_request(f"the protobuf body is broken: {error!r}") from error


def _message(name: str, data: bytes) -> Json:
    described = MESSAGES.get(name)
    if described is None:
        raise _unsupported(f"kind {name}")
    result: Json = {}
    for number, value in _fields(data):
        if number not in described:
            raise _unsupported(f"field {number} of {name}")
        _put(result, *described[number], value)
    return result


def _unsupported(what: str) -> ApiError:
    message = f"{what} is not read from protobuf here: send JSON (kubectl create -f does)"
    return ApiError(415, "UnsupportedMediaType", message)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (number, value): an int for a varint, bytes for what has a length."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        if tag & 7 == 0:
            value: Any
            value, place = _varint(data, place)
        elif tag & 7 == 2:
            size, place = _varint(data, place)
            if place + size > len(data):
                raise IndexError("a field is longer than the message")
            value, place = data[place : place + size], place + size
        else:
            raise _unsupported(f"wire type {tag & 7}")
        yield tag >> 3, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return result, place


def _put(result: Json, name: str, kind: str, value: Any) -> None:
    """Write one field the way JSON would: what Go leaves out when empty is left out here."""
    if kind.startswith("*"):
        result.setdefault(name, []).append(_value(kind[1:], value))
    elif kind in ("labels", "quantities"):
        entry = dict(_fields(value))
        text = entry.get(2, b"")
        if kind == "quantities":
            text = dict(_fields(text)).get(1, b"0")
        result.setdefault(name, {})[entry.get(1, b"").decode()] = text.decode()
    elif kind != "skip":
        read = _value(kind, value)
        if read not in ("", None) and not (kind == "flag" and not read):
            result[name] = read


def _value(kind: str, value: Any) -> Any:  # noqa: PLR0911 (one line for each type)
    match kind:
        case "text":
            return value.decode()
        case "bytes":
            return value
        case "int":
            return value - (1 << 64) if value >= 1 << 63 else value
        case "bool" | "flag":
            return bool(value)
        case "micro":
            moment = dict(_fields(value))
            return micro_stamp(moment.get(1, 0) + moment.get(2, 0) / 1e9) if moment else None
        case "either":
            parts = dict(_fields(value))
            return parts.get(3, b"").decode() if parts.get(1) else parts.get(2, 0)
    return _message(kind, value)
