"""The portal and all workers of one machine: what `serve` and `demo` run."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence

from django.conf import settings
from django.urls import get_resolver

from scheduling.services.worker.children import ChildPart, Family
from scheduling.services.worker.parts import load, parts

Ready = Callable[[], None]


def are_workers_here() -> bool:
    """Whether one command runs them, too: no broker stands between machines."""
    return bool(settings.WEIR_BROKER_FOLDER)


def run_together(
    portal: Callable[[Ready], None], *, is_vital: bool, more: Sequence[ChildPart] = ()
) -> int:
    """Run ``portal``, the workers and ``more``, each in a process of its own, until told to end; the status
    to leave with. The others begin when ``portal`` calls what it is given. Where it ``is_vital`` its end is
    that of all, else it is started again.

    To be called from the main thread, while there is no other.
    """
    load()
    from portal.config import serving  # noqa: F401 - so that all share what it imports

    assert get_resolver().url_patterns  # noqa: S101 - pages are imported with them
    is_ready = mmap.mmap(-1, 1)

    def ready() -> None:
        is_ready[0] = 1

    first = ChildPart("portal", lambda: portal(ready), is_vital=is_vital)
    return Family([first], [*parts(), *more], is_open=lambda: bool(is_ready[0])).run()
