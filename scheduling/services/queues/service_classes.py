"""The class of service that people have: what each may have run in which queues.

The keeper of people says so: the setting ``WEIR_SERVICE_CLASSES`` names the function that answers for a
cluster. It is asked once a cycle, so what it says takes effect with the next one. Without it, and in
queues of no team, the cluster's own rights alone decide who may create work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils.functional import cached_property
from django.utils.module_loading import import_string

from scheduling.models import Cluster
from scheduling.services.tables.row_cache import RowCache


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """What ``user`` (a user name) may have run in the queue at ``path``, and mostly in all below it.

    The path of the root is empty. Of classes, None is every one and an empty set is none; GPUs are
    milli-GPU of a whole workload, None is unlimited. ``persona`` and ``team`` are names for sentences.
    """

    user: str
    path: str
    team: str
    persona: str
    priority_classes: frozenset[str] | None = None
    gpu_classes: frozenset[str] | None = None
    max_gpus: int | None = None
    max_run_time_s: int | None = None
    max_gpus_at_once: int | None = None
    """Of all the user's work that it lets run."""
    below: bool = True
    """Whether it holds for the queues below ``path`` too."""

    def gives_priority(self, name: str) -> bool:
        """Whether work that it lets run may be of the priority class ``name``."""
        return self.priority_classes is None or name in self.priority_classes

    def reaches(self, path: str) -> bool:
        """Whether it holds for the queue at ``path``."""
        return is_within(path, self.path) if self.below else path == self.path


@dataclass(frozen=True)
class ServiceClasses:
    """All of a cluster. ``team_paths`` are the queues that a team is bound to."""

    classes: tuple[ServiceClass, ...] = ()
    team_paths: frozenset[str] = frozenset()

    def binds(self, path: str) -> bool:
        """Whether work in the queue at ``path`` has to be of somebody who may have it run there."""
        return bool(self.team_paths) and not self.team_paths.isdisjoint(down_to(path))

    def at(self, path: str) -> tuple[ServiceClass, ...]:
        """Of everybody, those that hold for the queue at ``path``."""
        return tuple(one for one in self.classes if one.reaches(path))

    def of(self, user: str, path: str) -> tuple[ServiceClass, ...]:
        """Those of ``user`` that hold for the queue at ``path``; the most generous of them counts."""
        return tuple(one for one in self._by_user.get(user, ()) if one.reaches(path))

    @cached_property
    def _by_user(self) -> dict[str, list[ServiceClass]]:
        found: dict[str, list[ServiceClass]] = {}
        for one in self.classes:
            found.setdefault(one.user, []).append(one)
        return found


def is_within(path: str, top: str) -> bool:
    """Whether the queue at ``path`` is the one at ``top`` or below it."""
    return not top or path == top or path.startswith(f"{top}/")


def down_to(path: str) -> list[str]:
    """'a/b' -> ['', 'a', 'a/b']: the root's path is empty."""
    parts = path.split("/")
    return ["", *("/".join(parts[: i + 1]) for i in range(len(parts)))]


Keeper = Callable[[Cluster, RowCache], ServiceClasses]


def load(cluster: Cluster, unchanged: RowCache | None = None) -> ServiceClasses:
    """The classes of service of everybody on ``cluster`` now; ``unchanged`` remembers from one call to the
    next."""
    return _keeper(settings.WEIR_SERVICE_CLASSES)(cluster, unchanged or RowCache())


@cache
def _keeper(name: str) -> Keeper:
    """The function of that dotted name; for no name one that knows nobody."""
    if not name:
        return lambda cluster, unchanged: ServiceClasses()
    found: Keeper = import_string(name)
    return found
