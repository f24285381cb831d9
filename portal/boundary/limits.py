"""Counts that all processes of the portal share through the cache: requests a minute, open streams.

Where the cache is away, nothing is refused: a portal without Redis is better than none.
"""

from __future__ import annotations

import logging
import secrets
import time

from django.core.cache import cache

log = logging.getLogger(__name__)
PERIOD_S = 60


def _away() -> type[Exception]:
    """What says that the cache is away, read when something is raised: its client takes 7 MiB of a process
    that may have none."""
    from redis.exceptions import RedisError

    return RedisError


def spend(who: str, limit: int) -> float:
    """Count one more of ``who`` in this minute: 0 while within ``limit``, else seconds to wait.

    A limit of 0 is none.
    """
    if not limit:
        return 0
    now = time.time()
    key = f"spent:{who}:{int(now // PERIOD_S)}"
    try:
        cache.add(key, 0, timeout=2 * PERIOD_S)
        count = cache.incr(key)
    except (_away(), ValueError):
        log.warning("The cache keeps no counts: nobody is throttled.")
        return 0
    return 0 if count <= limit else PERIOD_S - now % PERIOD_S


class Slot:
    """One of a number that somebody may hold at once. Free again after ``lifetime_s`` in any case."""

    def __init__(self, key: str, mark: str) -> None:
        self.key, self.mark = key, mark

    @classmethod
    def take(cls, who: str, limit: int, lifetime_s: float) -> Slot | None:
        """None when ``who`` holds ``limit`` already. Two processes never take the same one."""
        mark = secrets.token_hex(8)
        try:
            for number in range(limit):
                key = f"slot:{who}:{number}"
                if cache.add(key, mark, timeout=lifetime_s):
                    return cls(key, mark)
        except _away():
            log.warning("The cache keeps no counts: nobody is held to a number of streams.")
            return cls("", mark)
        return None

    def free(self) -> None:
        """Safe to call twice: what another has taken since stays theirs."""
        try:
            if self.key and cache.get(self.key) == self.mark:
                cache.delete(self.key)
        except _away():
            log.warning("The cache is away: a slot is free again when it has run out.")
