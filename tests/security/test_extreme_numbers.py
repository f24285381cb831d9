"""Numbers that nobody needs, at every door that takes one: refused at the named field, never by a 5xx.

In bodies of JSON at each field that the document of the API knows as a number, in every parameter of a query
and of a form, in the file of a queue tree, in a snapshot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.urls import get_resolver

from scheduling.engine.document import parse
from scheduling.engine.model import SnapshotError
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import KNOBS as EVERY_KNOB
from scheduling.services.queues.tree_files import apply_tree
from scheduling.services.queues.tree_files import parse as parse_tree
from tests.portal.test_permission_matrix import ADDRESSES, ROWS
from tests.security.sealed import GPUS
from tests.security.test_hostile_input import (
    NIGHTLY,
    TWINS,
    Attacker,
    addresses,
    met_by,
    methods,
    parameters,
    remembering,  # noqa: F401 - a fixture
    slots,  # noqa: F401 - a fixture
    typed,
    url_of,
    world,  # noqa: F401 - a fixture
)
from tests.security.test_numbers import DOCUMENT, SCHEMAS

KNOBS = {knob.field for knob in EVERY_KNOB if not knob.read}
pytestmark = [pytest.mark.django_db, pytest.mark.long]
BEYOND: dict[str, Any] = {
    "1e308": 1e308, "-1e308": -1e308, "10^30": 10**30, "-10^30": -(10**30), "text of 1e308": "1e308",
    "text of nan": "NaN", "text of inf": "Infinity", "400 digits": "9" * 400, "2^63": 2**63,
}  # fmt: skip
"""No number that Weir is sent may be any of these."""
RAW = {"nan": "NaN", "inf": "Infinity", "1e999": "1e999"}
"""What JSON has no words for."""
TYPED = ("1e308", "-1", "1" + "0" * 30, "nan", "inf", "-1e308", "0.1e-300", "9" * 19)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return resolved(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    for part in ("allOf", "oneOf", "anyOf"):
        if part in schema:
            return resolved(schema[part][0])
    return schema


def one_of(schema: dict[str, Any]) -> dict[str, str]:
    """The field that says which of several shapes it is, with the word for the first; empty where one is."""
    named = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "discriminator" not in named:
        return {}
    words, first = named["discriminator"]["mapping"], named["oneOf"][0]["$ref"]
    return {
        named["discriminator"]["propertyName"]: next(w for w, at in words.items() if at == first)
    }


def plain(schema: dict[str, Any], depth: int = 0) -> Any:
    """A value of that shape, with every field there is."""
    chosen = one_of(schema)
    schema = resolved(schema)
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}) if depth < 5 else {}
            writable = {key: one for key, one in fields.items() if not one.get("readOnly")}
            return {key: plain(one, depth + 1) for key, one in writable.items()} | chosen
        case "array":
            return [plain(schema["items"], depth + 1)]
        case "number" | "integer":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case _:
            return "2030-01-01T00:00:00Z" if schema.get("format") == "date-time" else "x"


def places(
    schema: dict[str, Any], value: Any, at: tuple[Any, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    """The way to each number of ``value``."""
    schema = resolved(schema)
    if schema.get("type") in ("number", "integer"):
        yield at
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from places(schema["properties"][key], one, (*at, key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from places(schema["items"], one, (*at, i))


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method, name of the address, schema of its body), of each that takes numbers in JSON."""
    names = {
        re.sub(r"<[^>]+>", "{}", str(route.pattern)): f"api:{route.name}"
        for entry in get_resolver().url_patterns
        if str(entry.pattern) == "api/v1/"
        for route in entry.url_patterns
    }
    for path, verbs in DOCUMENT["paths"].items():
        for verb, operation in verbs.items():
            content = operation.get("requestBody", {}).get("content", {})
            if verb != "get" and "application/json" in content:
                schema = content["application/json"]["schema"]
                if list(places(schema, plain(schema))):
                    yield (
                        verb.upper(),
                        names[re.sub(r"{\w+}", "{}", path).removeprefix("/api/v1/")],
                        schema,
                    )


OPERATIONS = {f"{method} {name}": (method, name, schema) for method, name, schema in operations()}


def put(value: Any, at: tuple[Any, ...], number: Any) -> Any:
    changed = json.loads(json.dumps(value))
    part = changed
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = number
    return changed


def test_operations_that_take_numbers_are_there():
    assert len(OPERATIONS) > 15
    assert {name for _, name, _ in OPERATIONS.values()} <= set(ROWS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_extreme_number_in_a_json_body_is_refused_at_its_field(world, operation):  # noqa: F811
    method, name, schema = OPERATIONS[operation]
    attacker, url, body = Attacker(world, "admin"), url_of(world, name), plain(schema)
    for at in places(schema, body):
        field = ".".join(map(str, at))
        for what, number in BEYOND.items():
            sent = json.dumps(put(body, at, number))
            answer = attacker.send(f"{field}={what}", method, url, sent, "application/json")
            assert 400 <= answer.status_code < 500, (
                field,
                what,
                answer.status_code,
                answer.content,
            )
            if answer.status_code == 400:
                assert field in answer.json().get("fields", {}), (field, what, answer.content)
        for what, word in RAW.items():
            sent = json.dumps(put(body, at, "@@")).replace('"@@"', word)
            answer = attacker.send(f"{field}={what}", method, url, sent, "application/json")
            assert 400 <= answer.status_code < 500, (field, what, answer.status_code)
    attacker.check()


def by_turns(name: str, turn: int) -> tuple[str, ...]:
    """Every second number goes to an address, the others to the next one and to its other method; fewer to
    those that another one reads for; at night each of them everywhere."""
    every = 1 if NIGHTLY else len(TYPED) // 2 if name in TWINS else 2
    return TYPED[turn % every :: every]


@pytest.mark.parametrize("name", [name for name in ROWS if ADDRESSES[name]])
def test_extreme_number_in_any_parameter_is_no_server_error(world, name):  # noqa: F811
    attacker = Attacker(world, met_by(name)[0])
    for url in addresses(world, name):
        for turn, method in enumerate(methods(name), [*ROWS].index(name)):
            names = parameters(attacker, method, url)
            for number in by_turns(name, turn):
                if names:
                    typed(attacker, number, method, url, dict.fromkeys(names, number))
            for i, one in enumerate(() if name in TWINS and not NIGHTLY else names):
                typed(attacker, f"{one} alone", method, url, {one: TYPED[i % len(TYPED)]})
    attacker.check()


TREE = {
    "queues": [
        {
            "name": "fresh-tree",
            "priority": 1,
            "nominal": {GPUS: 1},
            "borrowing_limit": {GPUS: 1},
            "lending_limit": {GPUS: 1},
            "weight": {GPUS: 1},
        }
    ]
}
WORDS = ("1e308", "-1e308", "1.0e+308", "-1", "1" + "0" * 30, ".nan", ".inf", "-.inf", "'1e308'", "9" * 5000,
         "0x" + "f" * 300, "1e-320")  # fmt: skip


def _import(text: str, world: Any) -> None:  # noqa: F811
    queues = parse_tree(text, world.cluster)
    apply_tree(cluster=world.cluster, queues=queues, author=None, reason="test")


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word[:12])
@pytest.mark.parametrize(
    "field", ["priority", "nominal", "borrowing_limit", "lending_limit", "weight"]
)
def test_extreme_number_in_the_file_of_a_tree_is_refused_with_its_path(world, field, word):  # noqa: F811
    if (field, word) == ("priority", "-1"):
        pytest.skip("A queue may stand behind the others.")
    marked = put(TREE, ("queues", 0, field), "@@" if field == "priority" else {GPUS: "@@"})
    text = yaml.safe_dump(marked).replace("'@@'", word)
    with pytest.raises(ServiceError) as refused:
        _import(text, world)
    assert field in str(refused.value) or "line" in str(refused.value) or refused.value.field


@pytest.mark.parametrize("what", BEYOND)
@pytest.mark.parametrize(
    "field", ["priority", "nominal", "borrowing_limit", "lending_limit", "weight"]
)
def test_extreme_number_in_a_tree_that_is_sent_is_refused_with_its_path(world, field, what):  # noqa: F811
    attacker, number = Attacker(world, "admin"), BEYOND[what]
    sent = put(TREE, ("queues", 0, field), number if field == "priority" else {GPUS: number})

    answer = attacker.send(
        what, "PUT", url_of(world, "api:tree"), json.dumps(sent), "application/json"
    )

    assert answer.status_code == 400
    assert field in answer.content.decode()
    attacker.check()


@pytest.mark.parametrize("knob", sorted(KNOBS))
def test_extreme_number_for_a_knob_of_the_policy_is_refused_at_it(world, knob):  # noqa: F811
    attacker = Attacker(world, "admin")
    for what, number in BEYOND.items():
        sent = json.dumps({"values": {knob: number}, "reason": "test"})
        answer = attacker.send(what, "PUT", url_of(world, "api:policy"), sent, "application/json")
        assert answer.status_code == 400, (what, answer.content)
        assert knob in json.dumps(answer.json()), (what, answer.content)
    attacker.check()


QUOTA = {"nominal": 8, "borrowing_limit": 1, "lending_limit": 1, "weight": 1, "used_gpu_hours": 1}
SNAPSHOT: dict[str, Any] = {
    "now": "2026-01-05T10:00:00Z",
    "policy": {"history_strength": 1, "eviction_cap": 1, "charge_s": 3600, "max_evictions": 3},
    "gpu_classes": [{"name": "h100", "exchange_rate": 2}],
    "nodes": [{"name": "n1", "gpu_class": "h100", "gpus": 8, "cpus": 8, "memory_gib": 8}],
    "queues": [
        {"name": "root"},
        {
            "name": "a",
            "parent": "root",
            "priority": 1,
            "quotas": {"h100": QUOTA},
            "usage": {"h100": 1},
        },
    ],
    "priority_classes": [{"name": "normal", "value": 1, "min_run_time_s": 1, "max_wait_s": 60}],
    "workloads": [
        {
            "name": "w",
            "queue": "a",
            "priority_class": "normal",
            "gpu_classes": ["h100"],
            "members": {"min": 1, "max": 1},
            "gpus": 1,
            "cpus": 1,
            "memory_gib": 1,
            "submitted": "2026-01-05T09:00:00Z",
            "predicted_s": {"p50": 60, "p90": 60},
            "restart_cost_s": 1,
            "evictions": 1,
        }
    ],
}


def test_snapshot_without_extreme_numbers_is_read():
    assert parse(SNAPSHOT).workloads


def numbers(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(one, (*at, key))
    elif isinstance(value, (int, float)):
        yield at


@pytest.mark.parametrize("number", [*BEYOND.values(), float("nan"), float("inf"), 2**53], ids=str)
@pytest.mark.parametrize("at", list(numbers(SNAPSHOT)), ids=str)
def test_extreme_number_in_a_snapshot_is_refused_with_its_path(at, number):
    with pytest.raises(SnapshotError) as refused:
        parse(put(SNAPSHOT, at, number))

    assert str(at[-1]) in str(refused.value) or str(at[-2]) in str(refused.value)
