"""When the next cycle of a cluster may run: one at a time, and one for a burst of events."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.02
"""Events that follow each other within this share one cycle."""


class Turn:
    """Lets one cycle run at a time, and others know when none does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._since_s = 0.0

    def take(self) -> bool:
        """Whether the turn is the caller's now, who gives it back."""
        with self._changed:
            taken, self._is_taken = self._is_taken, True
            if not taken:
                self._since_s = time.monotonic()
        return not taken

    def taken_s(self) -> float:
        """Seconds since it was taken; 0 where nobody has it. Waits for nobody."""
        since_s = self._since_s
        return time.monotonic() - since_s if self._is_taken else 0.0

    def give_back(self) -> None:
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()

    def wait_free(self) -> None:
        """Wait until nobody has it, without taking it: who wants it then is not kept from it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)


class Debounce:
    """Calls ``act`` once, ``delay_s`` after the first of a burst of calls, and not while a cycle has its
    ``turn``: what comes during a cycle waits for its end."""

    def __init__(self, act: Callable[[], None], turn: Turn, delay_s: float = DEBOUNCE_S) -> None:
        self._act = act
        self._turn = turn
        self._delay_s = delay_s
        self._call = threading.Event()
        self._closed = False
        self._later: threading.Timer | None = None
        self._thread = threading.Thread(target=self._run, name="debounce", daemon=True)
        self._thread.start()

    def __call__(self) -> None:
        self._call.set()

    def later(self, seconds: float) -> None:
        """Call in so many seconds, unless such a call waits already."""
        if self._later is None or not self._later.is_alive():
            self._later = threading.Timer(seconds, self)
            self._later.daemon = True
            self._later.start()

    def is_due(self) -> bool:
        """Whether ``act`` is about to be called."""
        return self._call.is_set()

    def close(self) -> None:
        self._closed = True
        if self._later is not None:
            self._later.cancel()
        self._call.set()

    def _run(self) -> None:
        while not self._closed:
            self._call.wait()
            time.sleep(self._delay_s)
            self._turn.wait_free()
            self._call.clear()
            if not self._closed:
                self._try()

    def _try(self) -> None:
        """A call that fails ends no later one: the clock asks anyway, and so does the next event."""
        try:
            self._act()
        except Exception:
            log.exception("a cycle was not asked for")
