"""Expressions of admission policies, each with the value that the language's definition gives it."""

from __future__ import annotations

import pytest

from workshop.testbed.server.admission.cel import CelError, evaluate

POD = {
    "metadata": {"name": "p", "labels": {"a/b": "x"}},
    "spec": {
        "containers": [
            {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}}},
            {"name": "side"},
        ],
        "suspend": False,
    },
}
SCOPE = {"object": POD, "oldObject": None, "names": ["nvidia.com/gpu"]}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 == 3 && !(2 > 3)", True),
        ("object.spec.suspend == false", True),
        ("oldObject == null", True),
        ("has(object.spec.suspend) ? 'there' : 'absent'", "there"),
        ("has(object.spec.gates) || object.spec.suspend", False),
        ("object.metadata.labels['a/b'] + '!'", "x!"),
        ("'a/b' in object.metadata.labels", True),
        ("object.spec.containers.exists(c, has(c.resources))", True),
        ("object.spec.containers.all(c, has(c.resources))", False),
        ("object.spec.containers.filter(c, !has(c.resources)).map(c, c.name)", ["side"]),
        ("size(object.spec.containers) == object.spec.containers.size()", True),
        (
            "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && "
            "c.resources.limits.exists(r, r in names))",
            True,
        ),
        ("['b', \"a\"].join(', ')", "b, a"),
        ("object.spec.absent == 1 || true", True),
        ("false && object.spec.absent == 1", False),
        ("object.metadata.name.startsWith('p') && -1 < 0", True),
        ("names[0]", "nvidia.com/gpu"),
    ],
)
def test_expression_has_its_value(expression, value) -> None:
    assert evaluate(expression, SCOPE) == value


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.absent",
        "object.spec.absent == 1 || false",
        "'1' < 2",
        "1 && true",
        "nobody",
        "names[3]",
        "1 in 2",
        "object.metadata.name.exists(c, true)",
        "(1 + ",
        "object.nosuch()",
        "1 # 2",
    ],
)
def test_expression_without_a_value_is_an_error(expression) -> None:
    with pytest.raises(CelError):
        evaluate(expression, SCOPE)
