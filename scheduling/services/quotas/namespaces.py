"""The one door by which a queue gets a namespace: people work in the namespaces of their queues."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.utils.module_loading import import_string

from scheduling.cluster.vocabulary.labels import OFFERED
from scheduling.models import Queue


def check(queue: Queue, author: AbstractBaseUser | None, taking: str = "") -> None:
    """Asks the judge that the setting ``WEIR_NAMESPACE_JUDGE`` names, since only the portal knows persons.

    ``taking`` names a namespace of which the author was shown what becomes of it.
    Commands run by hand have no author and are not judged. Raises ServiceError at ``namespace``.
    """
    if author is not None and queue.namespace:
        import_string(settings.WEIR_NAMESPACE_JUDGE)(author, queue, taking)


def offering(*names: str) -> str:
    """How the cluster's administrators let Weir's engine have namespaces that stand."""
    return f"kubectl label namespace {' '.join(names)} {OFFERED}=true"
