"""Faults on purpose: what a busy or broken server does, with dice that can be replayed."""

from __future__ import annotations

import random
import re
import threading
from dataclasses import asdict, dataclass, fields
from typing import Any

from .errors import ApiError, too_many_requests
from .resources import Json

_WRITES = frozenset({"PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class FaultRules:
    """How often which fault strikes; shares are between 0 and 1, times are wall seconds."""

    latency_s: float = 0.0
    jitter_s: float = 0.0
    """Added to the latency, uniform between 0 and this."""
    conflict: float = 0.0
    """409 on writes to existing objects."""
    too_many: float = 0.0
    """429 with Retry-After."""
    server_error: float = 0.0
    """500 before anything was done."""
    dropped_watch: float = 0.0
    """Share of watches that are cut, at a random moment within `drop_within_s`."""
    drop_within_s: float = 5.0
    retry_after_s: int = 1
    path: str = ""
    """Regular expression searched in the path; empty: every path."""
    verbs: tuple[str, ...] = ()
    """HTTP methods struck, and WATCH; empty: all."""
    seed: int = 0


class Faults:
    """The rules in force. Safe to change from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set(FaultRules())

    def configure(self, **rules: Any) -> None:
        """Put `rules` (fields of FaultRules) in force instead of those before.

        Raises ValueError naming an unknown rule or a share that is none.
        """
        known = {field.name for field in fields(FaultRules)}
        if unknown := sorted(set(rules) - known):
            raise ValueError(f"{unknown[0]}: no such rule; known are {', '.join(sorted(known))}")
        for name in ("conflict", "too_many", "server_error", "dropped_watch"):
            if not 0 <= float(rules.get(name, 0)) <= 1:
                raise ValueError(f"{name}: {rules[name]} is no share between 0 and 1")
        if "verbs" in rules:
            rules["verbs"] = tuple(verb.upper() for verb in rules["verbs"])
        self._set(FaultRules(**rules))

    def clear(self) -> None:
        """Let everything succeed again."""
        self._set(FaultRules())

    def describe(self) -> Json:
        """Return the rules in force."""
        return asdict(self._rules)

    def _set(self, rules: FaultRules) -> None:
        pattern = re.compile(rules.path)
        with self._lock:
            self._rules = rules
            self._dice = random.Random(rules.seed)  # noqa: S311 (faults, no secrets)
            self._pattern = pattern
            self._active = rules != FaultRules()

    def strike(self, method: str, path: str) -> float:
        """Return the wall seconds to wait before the answer; raises ApiError for a fault."""
        if not self._active or not self._concerns(method, path):
            return 0.0
        rules = self._rules
        with self._lock:
            lots = [self._dice.random() for _ in range(4)]
        if lots[0] < rules.too_many:
            raise too_many_requests("too many requests, please try again", rules.retry_after_s)
        if lots[1] < rules.server_error:
            raise ApiError(500, "InternalError", "Internal error occurred: injected fault")
        if lots[2] < rules.conflict and method in _WRITES:
            raise ApiError(409, "Conflict", "Operation cannot be fulfilled: injected fault")
        return rules.latency_s + lots[3] * rules.jitter_s

    def watch_lifetime(self, path: str) -> float | None:
        """Return after how many wall seconds a new watch is cut, or None."""
        if not self._active or not self._concerns("WATCH", path):
            return None
        with self._lock:
            dropped = self._dice.random() < self._rules.dropped_watch
            return self._dice.random() * self._rules.drop_within_s if dropped else None

    def _concerns(self, method: str, path: str) -> bool:
        verbs = self._rules.verbs
        return (not verbs or method in verbs) and self._pattern.search(path) is not None
