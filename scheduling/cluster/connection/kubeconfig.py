"""A kubeconfig as somebody gave it: read within bounds, and no command of it run unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from kubernetes import client as official
from kubernetes import config as official_config
from kubernetes.config import ConfigException

from scheduling.files import BrokenFileError, Fault, lines_of, read, read_text

Json = dict[str, Any]

COMMANDS_ALLOWED = "WEIR_KUBECONFIG_COMMANDS"
"""Environment: ``1`` lets a kubeconfig name commands that fetch credentials, as those of clouds do."""
RUNS_COMMANDS = ("exec", "auth-provider")


def configuration_from(kubeconfig: str, context: str = "") -> official.Configuration:
    """What a kubeconfig says of ``context``, or of its current one.

    ``kubeconfig`` may be several files, parted as in the variable KUBECONFIG. Raises the official client's
    ConfigException, one line for each fault.
    """
    configuration = official.Configuration()
    with _telling(kubeconfig, context):
        _Kubeconfig(_texts_of(kubeconfig)).check(context)
        official_config.load_kube_config(  # type: ignore[no-untyped-call] # as published
            config_file=kubeconfig, context=context or None, client_configuration=configuration
        )
    return configuration


def configuration_of_text(text: str, name: str, context: str = "") -> official.Configuration:
    """The same of a kubeconfig that is in no file; faults call it ``name``. Raises ConfigException."""
    configuration = official.Configuration()
    with _telling(name, context):
        _Kubeconfig({name: text}).check(context)
        official_config.load_kube_config_from_dict(  # type: ignore[no-untyped-call] # as published
            read(text, name), context=context or None, client_configuration=configuration,
            persist_config=False,
        )  # fmt: skip
    return configuration


@contextmanager
def _telling(name: str, context: str) -> Iterator[None]:
    try:
        yield
    except BrokenFileError as error:
        raise ConfigException(str(error)) from error
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ConfigException(f"{name}: {error!r} in what {context!r} leads to") from error


def _texts_of(paths: str) -> dict[str, str]:
    names = [path for path in paths.split(os.pathsep) if path]
    there = [path for path in names if os.path.exists(path)] or names[:1] or [""]
    return {path: read_text(path) for path in there}


class _Kubeconfig:
    """Of several files the first that has a name is right, as for kubectl."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._first = next(iter(texts))
        self._parts = {path: self._mapping(path, text) for path, text in self._texts.items()}

    def _mapping(self, path: str, text: str) -> Json:
        found = read(text, path)
        if not isinstance(found, dict):
            self._fail(path, "", "no keys", "a kubeconfig", "name another file")
        return found

    def check(self, context: str) -> None:
        """Whether everything that ``context`` leads to is there and harmless."""
        _, _, chosen = self._named("contexts", "context", context or self._current())
        at, field, cluster = self._named("clusters", "cluster", chosen.get("cluster"))
        server = cluster.get("server")
        if not str(server).startswith(("https://", "http://")):
            self._fail(
                at, f"{field}.server", repr(server), "the URL of an API server", "correct it"
            )
        if chosen.get("user"):
            self._harmless(*self._named("users", "user", chosen["user"]))

    def _current(self) -> str:
        named = (part.get("current-context") for part in self._parts.values())
        return str(next(filter(None, named), ""))

    def _named(self, kind: str, key: str, name: Any) -> tuple[str, str, Json]:
        """File, path in it and content of the entry of ``kind`` that is called ``name``."""
        known: list[str] = []
        for path, part in self._parts.items():
            for number, row in enumerate(self._rows(path, kind, part.get(kind) or [])):
                if row.get("name") != name:
                    known.append(repr(row.get("name")))
                    continue
                field, found = f"{kind}[{number}].{key}", row.get(key) or {}
                if not isinstance(found, dict):
                    self._fail(path, field, repr(found)[:80], "keys with values", "correct it")
                return path, field, found
        value = repr(name) if name else "no current-context"
        several = f"one of {', '.join(known[:5])}" if known else "a list of them"
        self._fail(self._first, kind, value, several, "name one that is there")

    def _rows(self, path: str, kind: str, rows: Any) -> list[Json]:
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self._fail(path, kind, "no list of those", "names with what is theirs", "correct it")
        return rows

    def _harmless(self, path: str, field: str, user: Json) -> None:
        if os.environ.get(COMMANDS_ALLOWED) == "1":
            return
        for key in RUNS_COMMANDS:
            if key in user:
                self._fail(
                    path, f"{field}.{key}", "a command to run", "a token or a certificate",
                    f"set {COMMANDS_ALLOWED}=1 if you trust the file",
                )  # fmt: skip

    def _fail(self, path: str, field: str, found: str, expected: str, remedy: str) -> NoReturn:
        text = self._texts.get(path, "")
        line = lines_of(text, [field])[field] if field and text.strip() else 0
        raise BrokenFileError(Fault(path, line, field, found, expected, remedy))
