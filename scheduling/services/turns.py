"""When a cycle runs: one at a time, soon after a change, and a little later after an arrival."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

DEBOUNCE_S = 0.02
"""Changes that follow each other within this share one cycle."""
ARRIVAL_S = 0.2
"""The longest that an arrival waits for others to share its cycle."""


class Turn:
    """Lets one cycle run at a time, and others know when none does and how long the last one took."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._began = 0.0
        self.took_s = 0.0

    def take(self) -> bool:
        """Whether the turn is the caller's now, who gives it back."""
        with self._changed:
            if self._is_taken:
                return False
            self._is_taken, self._began = True, time.monotonic()
            return True

    def give_back(self) -> None:
        with self._changed:
            self._is_taken, self.took_s = False, time.monotonic() - self._began
            self._changed.notify_all()

    def wait_free(self) -> None:
        """Wait until nobody has it, without taking it: who wants it then is not kept from it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken)


class Debounce:
    """Calls ``act`` when a cycle is due and none has its ``turn``: what comes during one waits for its end.

    A change is due after ``delay_s``. An arrival, which waits behind others more often than it starts,
    is due after as long as the last cycle took: that leaves half of the time to what ends, for which
    others wait with GPUs idle.
    """

    def __init__(self, act: Callable[[], None], turn: Turn, delay_s: float = DEBOUNCE_S) -> None:
        self._act = act
        self._turn = turn
        self._delay_s = delay_s
        self._sooner = threading.Condition()
        self._due_at = math.inf
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="debounce", daemon=True)
        self._thread.start()

    def __call__(self) -> None:
        self._call_in(self._delay_s)

    def arrived(self) -> None:
        """Something came that was not there before."""
        self._call_in(max(self._delay_s, min(self._turn.took_s, ARRIVAL_S)))

    def is_due(self) -> bool:
        """Whether ``act`` is about to be called."""
        return self._due_at < math.inf

    def close(self) -> None:
        self._closed = True
        self._call_in(0.0)

    def _call_in(self, seconds: float) -> None:
        due_at = time.monotonic() + seconds
        with self._sooner:
            if due_at < self._due_at:
                self._due_at = due_at
                self._sooner.notify()

    def _run(self) -> None:
        while not self._closed:
            self._wait_until_due()
            self._turn.wait_free()
            self._begin_anew()
            if not self._closed:
                self._act()

    def _wait_until_due(self) -> None:
        with self._sooner:
            while (left_s := self._due_at - time.monotonic()) > 0:
                self._sooner.wait(None if math.isinf(left_s) else left_s)

    def _begin_anew(self) -> None:
        with self._sooner:
            self._due_at = math.inf
