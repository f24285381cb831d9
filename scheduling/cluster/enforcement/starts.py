"""Starts on their way: what was decided and committed, and the API server has not answered yet.

A plan that is made meanwhile counts them as made (``under_way``), so it need not wait for them. One ends with
the answer, be it yes or no, and only after the mirror has taken the answer in: at each moment a start is seen
there, or under way, or it was not made. There is at most one of an object, and nothing here outlives the
process: another one reads from the cluster which of them were made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING

from scheduling.cluster.connection.client import CONNECTIONS, ApiError

if TYPE_CHECKING:
    from scheduling.cluster.adapters import Sighting
    from scheduling.cluster.enforcement.enforcer import Act, Outcome

POLL_S = 0.01
"""Between two looks whether a cycle is called for."""
STALE_S = 30.0
"""A start that could not be sent for so long (wall seconds) is not sent any more, but planned anew."""

Answer = tuple["Outcome", float]
"""What came of an act, and the milliseconds that it took."""
Sent = Mapping["Future[Answer]", "Act"]


class Starts:
    """The starts of one cluster that are on their way, at most ``CONNECTIONS`` of them at the API server.

    ``write`` carries out an act; ``call`` asks for a cycle when one that nobody waits for has ended otherwise
    than the plan counted on, and each time half of those that were left have ended.
    """

    def __init__(self, write: Callable[[Act], Answer], call: Callable[[], None]) -> None:
        self._write, self._call = write, call
        # Apart from the other writes, which do not stand in line behind hundreds of these.
        self._pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="start")
        self._lock = threading.Lock()
        self._under_way: dict[str, Act] = {}
        """By the uid of the workload."""
        self._heard: list[tuple[Act, Future[Answer]]] = []
        self._calls_at = 0

    def __len__(self) -> int:
        return len(self._under_way)

    def under_way(self) -> dict[str, Sighting]:
        """uid -> the workload as it is once its start is made. Ask before the mirror is looked at: what is
        in neither was not made."""
        with self._lock:
            return {uid: act.becomes for uid, act in self._under_way.items() if act.becomes}

    def begin(self, acts: Iterable[Act]) -> Sent:
        """Have ``acts`` written, but those on objects whose start is under way already."""
        sent: dict[Future[Answer], Act] = {}
        for act in acts:
            with self._lock:
                if act.target.uid in self._under_way:
                    continue
                self._under_way[act.target.uid] = act
            sent[self._pool.submit(self._carry_out, act, time.monotonic())] = act
        return sent

    def wait(
        self, sent: Sent, *, is_called: Callable[[], bool], patience_s: float
    ) -> list[tuple[Act, Future[Answer]]]:
        """Those of ``sent`` that end before a cycle is called for, and within ``patience_s`` in any case.

        ``heard`` tells of the others. Once one raised, those that were not begun are not made.
        """
        until, left = time.monotonic() + patience_s, set(sent)
        while left and not (is_called() and time.monotonic() >= until):
            ended, left = wait(left, POLL_S, FIRST_EXCEPTION)
            if any(future.exception() for future in ended):
                left = {future for future in left if not self._withdraw(future, sent[future])}
                break
        if left:
            self._calls_at = len(self) // 2
        for future in left:
            future.add_done_callback(partial(self._hear, sent[future]))
        return [(act, f) for f, act in sent.items() if f not in left and not f.cancelled()]

    def heard(self) -> list[tuple[Act, Future[Answer]]]:
        """Those that nobody waited for and that have ended since this was asked last."""
        with self._lock:
            heard, self._heard = self._heard, []
        return heard

    def close(self) -> None:
        """Begin nothing more, and wait for what is at the API server."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _carry_out(self, act: Act, since: float) -> Answer:
        try:
            return ("", 0.0) if time.monotonic() - since > STALE_S else self._write(act)
        finally:
            self._forget(act)

    def _withdraw(self, future: Future[Answer], act: Act) -> bool:
        """Whether it was not begun, and is not made now."""
        if not future.cancel():
            return False
        self._forget(act)
        return True

    def _forget(self, act: Act) -> None:
        with self._lock:
            self._under_way.pop(act.target.uid, None)

    def _hear(self, act: Act, future: Future[Answer]) -> None:
        if future.cancelled():
            return
        with self._lock:
            self._heard.append((act, future))
            left = len(self._under_way)
            if is_due := left <= self._calls_at:
                self._calls_at = left // 2
        if is_due or not _is_made(future):
            self._call()


def _is_made(future: Future[Answer]) -> bool:
    if future.exception() is not None:
        return False
    outcome, _ = future.result()
    return bool(outcome) and not isinstance(outcome, ApiError)
