"""Whether a node selector and a required node affinity let pods run on a node.

As kube-scheduler reads them: kubernetes.io, "Assigning Pods to Nodes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def allows(
    selector: Mapping[str, str], terms: Sequence[Json], name: str, labels: Mapping[str, str]
) -> bool:
    """Whether pods may run on the node ``name`` with these ``labels``: all of ``selector`` and any of
    ``terms`` have to match."""
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    return not terms or any(_matches(term, name, labels) for term in terms)


def holds(expression: Json, labels: Mapping[str, str]) -> bool:
    """Whether one requirement holds; one that says nothing of sense never does."""
    value, listed = labels.get(str(expression.get("key"))), expression.get("values")
    test = OPERATORS.get(str(expression.get("operator")))
    return test is not None and test(value, listed if isinstance(listed, list) else [])


def _matches(term: Json, name: str, labels: Mapping[str, str]) -> bool:
    """An empty term matches no node."""
    fields, expressions = term.get("matchFields") or [], term.get("matchExpressions") or []
    if not fields and not expressions:
        return False
    named = all(holds(field, {"metadata.name": name}) for field in fields)
    return named and all(holds(expression, labels) for expression in expressions)


def _above(one: Any, other: Any) -> bool:
    """Of whole numbers; nothing else is above or below anything."""
    try:
        return int(one) > int(other)
    except (TypeError, ValueError):
        return False


OPERATORS: Mapping[str, Callable[[str | None, list[Any]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: bool(values) and _above(value, values[0]),
    "Lt": lambda value, values: bool(values) and _above(values[0], value),
}
