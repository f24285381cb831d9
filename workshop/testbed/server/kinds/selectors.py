"""Label and field selectors, as query strings and as objects (`matchLabels`, node terms)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from .errors import bad_request
from .resources import Json, Resource

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"^({_KEY})\s+(in|notin)\s*\(([^()]*)\)$")
_EQUAL = re.compile(rf"^({_KEY})\s*(==|=|!=|>|<)\s*({_VALUE})$")
_EXISTS = re.compile(rf"^(!?)\s*({_KEY})$")


@lru_cache(maxsize=512)
def parse_labels(text: str) -> Test:
    """Return the test of a label selector such as `a=b,c in (d,e),!f`.

    Raises ApiError (400) if it cannot be read.
    """
    tests = [_requirement(part.strip()) for part in _split(text) if part.strip()]
    return lambda labels: all(test(labels) for test in tests)


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    return re.split(r",(?![^()]*\))", text)


def _requirement(text: str) -> Test:
    if match := _SET.match(text):
        values = [value.strip() for value in match[3].split(",")]
        return requirement(match[1], "In" if match[2] == "in" else "NotIn", values)
    if match := _EXISTS.match(text):
        return requirement(match[2], "DoesNotExist" if match[1] else "Exists", [])
    if match := _EQUAL.match(text):
        operator = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}[match[2]]
        return requirement(match[1], operator, [match[3]])
    raise bad_request(f'unable to parse requirement: found "{text}", expected: a label selector')


def requirement(key: str, operator: str, values: list[str]) -> Test:
    """Return the test of one requirement; an unknown `operator` matches nothing."""
    wanted = frozenset(values)
    tests: dict[str, Test] = {
        "In": lambda labels: labels.get(key) in wanted,
        "NotIn": lambda labels: labels.get(key) not in wanted,
        "Exists": lambda labels: key in labels,
        "DoesNotExist": lambda labels: key not in labels,
        "Gt": lambda labels: _number(labels.get(key), float("-inf")) > _number(values[0], 0),
        "Lt": lambda labels: _number(labels.get(key), float("inf")) < _number(values[0], 0),
    }
    return tests.get(operator, lambda _: False)


def _number(text: str | None, otherwise: float) -> float:
    try:
        return int(text) if text is not None else otherwise
    except ValueError:
        return otherwise


def parse_selector_object(selector: Json | None) -> Test:
    """Return the test of a LabelSelector object; an empty one matches everything, None nothing."""
    if selector is None:
        return lambda _: False
    tests = [requirement(k, "In", [v]) for k, v in (selector.get("matchLabels") or {}).items()]
    tests += parse_expressions(selector.get("matchExpressions"))
    return lambda labels: all(test(labels) for test in tests)


def parse_expressions(expressions: list[Json] | None) -> list[Test]:
    """Return the tests of `matchExpressions`."""
    return [
        requirement(e.get("key", ""), e.get("operator", ""), e.get("values") or [])
        for e in expressions or ()
    ]


_COMMON = ("metadata.name", "metadata.namespace")
_FIELDS: dict[str, tuple[str, ...]] = {
    "Pod": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "Event": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
        "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
        "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
    ),
    "Job": ("status.successful",),
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
}  # fmt: skip
_ALIASES = {"status.successful": "status.succeeded", "source": "source.component"}


def parse_fields(text: str, resource: Resource) -> Callable[[Json], bool]:
    """Return the test of a field selector such as `status.phase!=Failed,metadata.name=x`.

    Raises ApiError (400) for a field that `resource` cannot be selected by.
    """
    supported = (*_COMMON, *_FIELDS.get(resource.kind, ()))
    terms = []
    for part in filter(None, text.split(",")):
        match = re.match(r"^\s*([^=!\s]+)\s*(==|=|!=)(.*)$", part)
        if match is None:
            raise bad_request(f"invalid field selector: '{part}'; can't understand '{part}'")
        if match[1] not in supported:
            raise bad_request(f"field label not supported: {match[1]}")
        path = tuple(_ALIASES.get(match[1], match[1]).split("."))
        terms.append((path, match[2] != "!=", match[3].strip()))
    return lambda body: all((_field(body, path) == value) is same for path, same, value in terms)


def _field(body: Json, path: tuple[str, ...]) -> str:
    value: Any = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return {"unschedulable": "false", "hostNetwork": "false", "succeeded": "0"}.get(
            path[-1], ""
        )
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
