"""Hostile values in every parameter of every address: refused in words, never by a 5xx.

As who may most there and as who may least, at night as everybody, on the database that the settings name
(SQLite here, and PostgreSQL by `make test-services`). Below /api/ every refusal is JSON of the one shape.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from django.urls import Resolver404, resolve

from portal.reports.kinds import REPORTS
from tests.portal.kubernetes import serving
from tests.portal.test_permission_matrix import ADDRESSES, ROWS
from tests.security.hostile import RAW_JSON, SHAPES, SURROGATES, TEXTS, YAML, reading, replaced
from tests.security.hostile import paths as parts
from tests.security.sealed import GPUS
from tests.walk.asking import Answer, body, one_connection, undone
from tests.walk.checkers import json_shape, server_error
from tests.walk.conftest import remembering, slots
from tests.walk.world import World, build

__all__ = ["remembering", "slots"]
pytestmark = [pytest.mark.django_db, pytest.mark.long]
FORM = "application/x-www-form-urlencoded"
PEOPLE = ("nobody", "researcher", "lead", "operator", "admin")
"""Who may least comes first."""
NAMES = [*ROWS, "accounts:sign_in"]
VARIANTS = {"web:submit": ("", "?as=manifest"), "web:live": ("?once=1",)}
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EVERY = 1 if NIGHTLY else len(TEXTS)
"""One text in so many goes alone into a parameter, another for the next, for the next person and for the next
address; all of them at night."""
TOGETHER = 8 if NIGHTLY else len(TEXTS)
"""With all parameters filled, each meets one text in so many."""
IN_TURN = 1 if NIGHTLY else 3
"""One text in so many goes into a place of a path."""
OF_A_BODY = 2 if NIGHTLY else 6
"""One value in so many goes into a place of a JSON body, others for the next person and the next place."""
SKIPPED = {"csrfmiddlewaretoken"}
TWINS = {
    "web:my_work", "web:queues", "web:own_workloads", "web:submit_preview",
    "web:request_forward", "web:request_ask_changes", "web:request_reject", "web:request_revoke",
} | {
    f"{area}:{kind}{ending}"
    for kind in REPORTS
    for area, ending in (
        ("reports", ""), ("reports", "_csv"), ("reports", "_json"), ("api", ""),
    )
    if (area, kind, ending) not in {("reports", "utilization", ""), ("api", "use", "")}
}  # fmt: skip
"""Addresses that read their parameters by the code of another one here; they meet all texts at once."""

MANIFEST: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "hostile",
        "labels": {"weir.dev/queue": "nlp"},
        "annotations": {"weir.dev/gpu-classes": GPUS},
    },
    "spec": {
        "parallelism": 1,
        "template": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "containers": [
                    {
                        "name": "main",
                        "image": "train",
                        "env": [{"name": "A", "value": "b"}],
                        "resources": {
                            "requests": {"cpu": "1"},
                            "limits": {"nvidia.com/gpu": "1", "memory": "1Gi"},
                        },
                    }
                ],
            },
        },
    },
}
CELL = {"queue": "nlp", "gpu_class": GPUS, "field": "nominal", "value": "20"}
BODIES: dict[str, list[dict[str, Any]]] = {
    "api:tokens": [{"name": "laptop"}],
    "api:cluster_mode": [{"mode": "paused"}],
    "api:group_rules": [{"group": "g", "team": "team-nlp", "persona": "researcher", "order": 1}],
    "api:service_accounts": [{"name": "n", "persona": "researcher", "purpose": "why"}],
    "api:service_tokens": [{"name": "ci", "scopes": ["work"], "days": 7}],
    "api:quotas": [
        {
            "queue": "language",
            "cells": [CELL],
            "reason": "why",
            "effective_from": "2026-12-01T00:00:00Z",
            "effective_until": "2026-12-02T00:00:00Z",
            "version": 1,
        }
    ],
    "api:workloads": [
        {"manifest": {"kind": "Job"}},
        {
            "name": "w",
            "queue": "nlp",
            "priority_class": "normal",
            "image": "i",
            "command": ["run"],
            "gpu_classes": [GPUS],
            "gpus_per_pod": 1,
            "pods_min": 1,
            "pods_max": 2,
            "cpus_per_pod": 1,
            "memory_gib_per_pod": 1,
            "run_time_limit_s": 3600,
            "checkpoint_interval_s": 60,
            "env": {"A": "b"},
            "volumes": {"claim": "/data"},
            "secrets": ["key"],
            "kind": "service",
            "not_before": "2030-01-01T00:00:00Z",
            "after": ["w0"],
            "array": 2,
            "array_at_once": 1,
        },
    ],
    "api:workload_change": [
        {
            "priority_class": "normal",
            "run_time_limit_s": 3600,
            "gpu_classes": [GPUS],
            "gpus_per_pod": 1,
            "pods_min": 1,
            "pods_max": 2,
            "not_before": "2030-01-01T00:00:00Z",
            "after": ["w0"],
            "at_once": 1,
        }
    ],
}


def met_by(name: str) -> tuple[str, ...]:
    """Who sends hostile input there: who may most of those that are let in, and who may least."""
    row = ROWS.get(name)
    may = (row and (row.write or row.read)) or frozenset({"nobody", "admin"})
    let_in = [who for who in PEOPLE if who in may]
    return PEOPLE if NIGHTLY else tuple(dict.fromkeys((let_in[-1], let_in[0])))


@pytest.fixture(scope="module")
def world(django_db_setup, django_db_blocker):
    """The organisation over an API server; each request is undone."""
    with django_db_blocker.unblock(), one_connection(), transaction.atomic():
        built = build()
        with serving(built.cluster):
            yield built
        transaction.set_rollback(True)


class Attacker:
    """One person's browser, and what went wrong for it."""

    def __init__(self, world: World, who: str) -> None:
        self.who, self.world, self.faults = who, world, []

    def send(self, what: str, method: str, url: str, sent: Any = b"", kind: str = FORM, **more):
        client = self.world.client(self.who)
        with undone(method):
            response = client.generic(method, url, sent, content_type=kind, **more)
            answer = Answer(
                what, self.who, method, url, response.status_code, response.headers, body(response)
            )
        if fault := server_error(answer) or json_shape(answer):
            why = getattr(response, "exc_info", None) or ""
            self.faults.append(f"{self.who} {method} {url[:80]} {what}: {fault} {why}"[:400])
        return response

    def check(self) -> None:
        assert not self.faults, f"{len(self.faults)} of:\n" + "\n".join(self.faults[:40])


def methods(name: str) -> tuple[str, ...]:
    row = ROWS.get(name)
    return ("GET", row.by if row else "POST")


def url_of(world: World, name: str) -> str:
    return "/sign-in/" if name == "accounts:sign_in" else world.url(name).partition("?")[0]


def addresses(world: World, name: str) -> Iterator[str]:
    for query in VARIANTS.get(name, ("",)):
        yield url_of(world, name) + query


_read: dict[tuple[str, str, str], list[str]] = {}


def parameters(attacker: Attacker, method: str, url: str) -> list[str]:
    """The names that this address reads, looked at once; of a grid's cells one each kind."""
    key = attacker.who, method, url
    if key not in _read:
        _read[key] = list(looked_at(attacker, method, url))
    return _read[key]


def looked_at(attacker: Attacker, method: str, url: str) -> list[str]:
    with reading() as names:
        attacker.send("plainly", method, url)
        if names:
            typed(attacker, "filled", method, url, dict.fromkeys(names, "1"))
    cells = {name.rpartition("-")[2]: name for name in names if name.startswith("cell-")}
    plain = {name for name in names if not name.startswith("cell-")}
    return sorted((plain | set(cells.values())) - SKIPPED)


def joined(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


def typed(attacker: Attacker, what: str, method: str, url: str, values: Mapping[str, str]) -> None:
    """In the query of a GET, in the form of a POST."""
    if method == "POST":
        attacker.send(what, method, url, urlencode(values))
    else:
        attacker.send(what, method, joined(url, urlencode(values)))


def alone(attacker: Attacker, method: str, url: str, names: list[str], turn: int) -> None:
    """One hostile text in one parameter."""
    for number, parameter in enumerate(names, turn):
        for what, text in islice(TEXTS.items(), number % EVERY, None, EVERY):
            typed(attacker, f"{parameter}={what}", method, url, {parameter: text})


def together(attacker: Attacker, method: str, url: str, names: list[str], turn: int) -> None:
    """A hostile text in each parameter at once; where there is none, it was asked plainly."""
    for start in range(turn % TOGETHER, len(TEXTS) if names else 0, TOGETHER):
        texts = [*islice(TEXTS.items(), start, None), *TEXTS.items()]
        values = {key: text[:2000] for key, (_, text) in zip(names, texts, strict=False)}
        typed(attacker, f"from {texts[0][0]}", method, url, values)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_text_in_each_parameter_is_no_server_error(world, name):
    for turn, who in enumerate(met_by(name)):
        attacker = Attacker(world, who)
        for url in addresses(world, name):
            for method in methods(name):
                names = parameters(attacker, method, url)
                if name not in TWINS:
                    alone(attacker, method, url, names, NAMES.index(name) + 7 * turn)
                together(attacker, method, url, names, NAMES.index(name) + 7 * turn)
        attacker.check()


IN_A_PATH = ("nul", "control", "256 characters", "past 64 bits", "5,000 digits", "climbing", "like")


@pytest.mark.parametrize("who", PEOPLE)
def test_hostile_text_in_the_path_is_no_server_error(world, who):
    attacker = Attacker(world, who)
    named = [name for name in ROWS if ADDRESSES[name] and name not in TWINS]
    for turn, name in enumerate(named[PEOPLE.index(who) :: len(PEOPLE)]):
        url = url_of(world, name)
        places = [i for i, part in enumerate(url.split("/")) if is_argument(url, i, name)]
        for place in places:
            for what in IN_A_PATH[(turn + place) % IN_TURN :: IN_TURN]:
                pieces = url.split("/")
                pieces[place] = quote(TEXTS[what][:3000], safe="")
                for method in methods(name):
                    attacker.send(what, method, "/".join(pieces))
    attacker.check()


def is_argument(url: str, place: int, name: str) -> bool:
    """True where another word at that place of the path leads to the same view."""
    pieces = url.split("/")
    pieces[place] = "7"
    try:
        return f"{':'.join((*resolve('/'.join(pieces)).namespaces, ''))}" in f"{name}:"
    except Resolver404:
        return False


@pytest.mark.parametrize("who", ["researcher", "lead"])
@pytest.mark.parametrize("name", BODIES)
def test_hostile_value_at_each_place_of_a_json_body_is_no_server_error(world, name, who):
    attacker, url = Attacker(world, who), url_of(world, name)
    values = {**TEXTS, **SURROGATES, **SHAPES}
    for plain in BODIES[name]:
        for turn, path in zip(count(who == "lead", 2), parts(plain), strict=False):
            for what, value in islice(values.items(), turn % OF_A_BODY, None, OF_A_BODY):
                sent = json.dumps(replaced(plain, path, value))
                attacker.send(f"{path}={what}", "POST", url, sent, "application/json")
    attacker.check()


@pytest.mark.parametrize("who", PEOPLE if NIGHTLY else ("nobody", "researcher", "admin"))
@pytest.mark.parametrize("name", [*BODIES, "api:workload_hold", "api:me", "api:nothing"])
def test_hostile_json_body_is_no_server_error(world, name, who):
    attacker, url = Attacker(world, who), url_of(world, name)
    for what, sent in RAW_JSON.items():
        attacker.send(what, "POST", url, sent, "application/json")
    attacker.check()


@pytest.mark.parametrize("value", [*SHAPES, "nul", "60,000 characters", "lone surrogate"])
def test_manifest_with_a_wrong_part_is_no_server_error(world, value):
    attacker, url = Attacker(world, "researcher"), url_of(world, "api:workloads")
    part = {**TEXTS, **SURROGATES, **SHAPES}[value]
    for path in parts(MANIFEST):
        sent = json.dumps({"manifest": replaced(MANIFEST, path, part)})
        attacker.send(f"{path}", "POST", url, sent, "application/json")
    attacker.check()


@pytest.mark.parametrize("what", YAML)
def test_hostile_yaml_pasted_is_no_server_error(world, what):
    attacker, url = Attacker(world, "researcher"), f"{url_of(world, 'web:submit')}?as=manifest"
    plain = json.dumps(MANIFEST)
    text = YAML[what]
    inside = plain[:-1] + ', "status": {' + text.removeprefix("a: ") + "}}"
    below = "\n".join([*_yaml_lines(), "status:", *(f"  {line}" for line in text.splitlines())])
    for pasted in (text, inside, below):
        attacker.send(what, "POST", url, urlencode({"text": pasted}))
    attacker.check()


def _yaml_lines() -> list[str]:
    return [f"{key}: {json.dumps(value)}" for key, value in MANIFEST.items()]


HEADERS: dict[str, dict[str, str]] = {
    "NUL in the session cookie": {"HTTP_COOKIE": 'sessionid="\\000aaaaaaaaaaaaaaaaaaaa"'},
    "NUL in every cookie": {"HTTP_COOKIE": 'csrftoken="\\000"; messages="\\000"; theme="\\000"'},
    "long session cookie": {"HTTP_COOKIE": "sessionid=" + "x" * 5000},
    "broken messages": {"HTTP_COOKIE": "messages=W1tdXQ:x:y; csrftoken=\u00ff"},
    "unknown host": {"HTTP_HOST": "evil.example.org"},
    "broken host": {"HTTP_HOST": "[::1"},
    "long host": {"HTTP_HOST": "x" * 5000},
    "accepts HTML": {"HTTP_ACCEPT": "text/html"},
    "accepts nonsense": {"HTTP_ACCEPT": ";;;,*/,/;q=\u00ff"},
    "accepts 10,000 types": {"HTTP_ACCEPT": "a/b," * 10_000},
    "broken token": {"HTTP_AUTHORIZATION": "Bearer \u00ff\u00fe"},
    "long token": {"HTTP_AUTHORIZATION": "Bearer " + "x" * 60_000},
    "broken referer": {"HTTP_REFERER": "https://[", "HTTP_HX_CURRENT_URL": "https://["},
    "auto-encoded": {
        "HTTP_HX_REQUEST": "true",
        "HTTP_HX_CURRENT_URL": "%00%ff",
        "HTTP_HX_CURRENT_URL_URI_AUTOENCODED": "true",
    },
    "forwarded for nobody": {"HTTP_X_FORWARDED_FOR": "x" * 5000, "HTTP_FORWARDED": "for=\x01"},
    "no address": {"REMOTE_ADDR": "x" * 400},
    "empty address": {"REMOTE_ADDR": ""},
    "charset utf-7": {"CONTENT_TYPE": f"{FORM}; charset=utf-7"},
    "charset utf-16": {"CONTENT_TYPE": "application/json; charset=utf-16"},
    "no boundary": {"CONTENT_TYPE": "multipart/form-data"},
    "broken boundary": {"CONTENT_TYPE": "multipart/form-data; boundary=\u00ff"},
    "broken type": {"CONTENT_TYPE": ";;/;="},
    "negative length": {"CONTENT_LENGTH": "-1"},
    "length of words": {"CONTENT_LENGTH": "many"},
    "length of 400 digits": {"CONTENT_LENGTH": "9" * 400},
    "another method": {"HTTP_X_HTTP_METHOD_OVERRIDE": "TRACE"},
    "long user agent": {"HTTP_USER_AGENT": "\u00ff" * 5000},
    "broken range": {"HTTP_RANGE": "bytes=9-1", "HTTP_IF_MODIFIED_SINCE": "9999-99"},
}
PLACES = ["/", "/sign-in/", "/c/fra1/", "/c/fra1/submit/", "/api/v1/me", "/api/v1/tokens",
          "/api/v1/clusters/fra1/workloads", "/api/v1/nothing", "/api/v1/schema", "/static/x",
          "/static/css/base.css"]  # fmt: skip


@pytest.mark.parametrize("who", ["nobody", "researcher"])
@pytest.mark.parametrize("what", HEADERS)
def test_hostile_header_is_no_server_error(world, what, who):
    attacker = Attacker(world, who)
    headers = dict(HEADERS[what])
    cookie = headers.pop("HTTP_COOKIE", "")
    for url in PLACES if who == "nobody" else PLACES[3:7]:
        for method in ("GET", "POST") if who == "researcher" else ("GET", "POST", "OPTIONS", "PUT"):
            more = dict(headers)
            if cookie and who == "nobody":
                more["HTTP_COOKIE"] = cookie
            attacker.send(what, method, f"{url}?a=%ff%fe", "a=b", **more)
    attacker.check()


SIGN_INS = {
    "256 characters": ("x" * 256, "x"),
    "60,000 characters": ("x" * 60_000, "x" * 60_000),
    "NUL": ("a\x00b", "a\x00b"),
    "control": ("a\x1b\r\nb", "\x07"),
    "widening": ("\ufdfa" * 150, "x"),
    "no UTF-8": ("%ff%fe", "%ff"),
}


ADDRESS = {
    "an address": "203.0.113.7",
    "400 characters": "x" * 400,
    "none": "",
    "a zone": "2001:db8::%\x00",
}


@pytest.mark.parametrize("address", ADDRESS)
@pytest.mark.parametrize("what", SIGN_INS)
def test_hostile_name_at_sign_in_is_refused_until_locked_out(world, what, address):
    """Every attempt is counted: the last ones meet the lock-out."""
    name, word = SIGN_INS[what]
    form = urlencode({"username": name, "password": word, "next": "//["})
    client = world.client("nobody")
    with transaction.atomic():
        codes = [
            client.generic(
                "POST", "/sign-in/?next=//[", form, content_type=FORM, REMOTE_ADDR=ADDRESS[address]
            ).status_code
            for _ in range(10)
        ]
        transaction.set_rollback(True)
    assert max(codes) < 500
    assert codes[0] in (200, 400)
