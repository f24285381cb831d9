"""Connecting a cluster with credentials that a person pastes: enciphered in the database, checked first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from scheduling.files import BrokenFileError, read
from scheduling.models import Cluster
from scheduling.models.credentials import is_kept, keep
from scheduling.models.credentials import read as read_credential
from scheduling.services.clusters import checkup, tokens
from scheduling.services.clusters.add import add, find_classes
from scheduling.services.clusters.gaps import Grade
from scheduling.services.errors import ServiceError

COLUMNS = ("kubeconfig", "token_file", "portal_token_file", "ca_file", "metrics_token_file")
"""Of a cluster, that name a file or refer to what is kept."""
MOST_BYTES = 128 * 1024
RUNS = ("exec", "auth-provider")
READS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Keys that name files of the machine where the kubeconfig was written."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A kubeconfig and its context, or an address with token and CA, or nothing: the pod's own account."""

    kubeconfig: str = ""
    context: str = ""
    api_url: str = ""
    token: str = ""
    portal_token: str = ""
    """Of the account that acts for people; empty: the other one does."""
    ca: str = ""


def is_in_pod() -> bool:
    """Whether this process runs on a cluster itself: the kubelet says so to every container."""
    return "KUBERNETES_SERVICE_HOST" in os.environ


def connect(*, name: str, credentials: Credentials, author: AbstractBaseUser | None) -> Cluster:
    """Add the cluster in observe mode, with a GPU class for each kind of GPU that its nodes show.

    Nothing is kept of one that does not answer, or lets nobody in. Raises ServiceError at the field, in the
    words of ``cluster check``; a kubeconfig that would run a command is refused and never run.
    """
    _refuse_kubeconfig(credentials)
    tokens.check(credentials.token, tokens.ENGINE, "token")
    tokens.check(credentials.portal_token, tokens.PORTAL, "portal_token")
    if Cluster.objects.filter(name=name).exists():
        raise ServiceError(
            "name_taken", f"There is a cluster {name}.", "Choose another name.", field="name"
        )
    with transaction.atomic():
        return _connect(name, credentials, author)


def _connect(name: str, credentials: Credentials, author: AbstractBaseUser | None) -> Cluster:
    cluster = add(name, author=author, api_url=credentials.api_url)
    pasted = {
        "kubeconfig": credentials.kubeconfig,
        "token_file": credentials.token,
        "portal_token_file": credentials.portal_token,
        "ca_file": credentials.ca,
    }
    for column, text in pasted.items():
        if text.strip():
            setattr(cluster, column, keep(cluster, column, text))
    cluster.context = credentials.context
    cluster.save()
    field = "kubeconfig" if credentials.kubeconfig else "token" if credentials.api_url else "way"
    for item in checkup.check(cluster):
        if item.topic == "connection" and item.grade is Grade.MISSING:
            raise ServiceError("no_connection_yet", item.sentence, item.remedy, field=field)
    find_classes(cluster)
    return cluster


def take_in(cluster: Cluster) -> list[str]:
    """Keep what the files hold that the cluster's row names; the columns that were changed. The files are
    needed no more. Raises OSError, and ServiceError for a kubeconfig that names files or commands and for a
    token that works too long."""
    taken = {
        c: read_credential(getattr(cluster, c)) for c in COLUMNS if _is_file(getattr(cluster, c))
    }
    _refuse_kubeconfig(Credentials(kubeconfig=taken.get("kubeconfig", "")))
    for column, account in (("token_file", tokens.ENGINE), ("portal_token_file", tokens.PORTAL)):
        tokens.check(taken.get(column, ""), account, column)
    with transaction.atomic():
        for column, text in taken.items():
            setattr(cluster, column, keep(cluster, column, text))
        cluster.save(update_fields=list(taken))
    return list(taken)


def _is_file(place: str) -> bool:
    # A projected token is written anew by the kubelet: what is taken in would end.
    return bool(place) and not is_kept(place) and not place.startswith("/var/run/secrets/")


def _refuse_kubeconfig(credentials: Credentials) -> None:
    text = credentials.kubeconfig
    if not text:
        return
    if len(text.encode()) > MOST_BYTES:
        _refuse("It is larger than a kubeconfig is.", "Paste one context alone.")
    try:
        document = read(text, "kubeconfig")
    except BrokenFileError as error:
        raise ServiceError("broken_file", str(error.faults[0]), field="kubeconfig") from error
    for kind, key, entry in _entries(document):
        for field in RUNS:
            if field in entry:
                _refuse(
                    f"{kind}.{key}.{field} names a command to run. Weir never runs one.",
                    f"Make a token for Weir's account: {tokens.made_by(tokens.ENGINE)}",
                )
        for field in READS:
            if field in entry:
                _refuse(
                    f"{kind}.{key}.{field} names a file of the machine where it was written.",
                    "Paste the output of: kubectl config view --flatten --minify",
                )


def _entries(document: Any) -> list[tuple[str, str, Mapping[str, Any]]]:
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    for kind, key in (("users", "user"), ("clusters", "cluster")):
        rows = document.get(kind) if isinstance(document, dict) else None
        for row in rows if isinstance(rows, list) else ():
            entry = row.get(key) if isinstance(row, dict) else None
            if isinstance(entry, dict):
                found.append((kind, str(row.get("name")), entry))
    return found


def _refuse(sentence: str, remedy: str) -> None:
    raise ServiceError("bad_kubeconfig", sentence, remedy, field="kubeconfig")
