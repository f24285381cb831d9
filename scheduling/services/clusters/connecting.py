"""Connecting a cluster with credentials that a person pastes: kept in files of Weir's own, checked first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from scheduling.files import BrokenFileError, read
from scheduling.models import Cluster
from scheduling.services.clusters import checkup, tokens
from scheduling.services.clusters.add import add, find_classes
from scheduling.services.errors import ServiceError

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


def connect(*, name: str, credentials: Credentials, author: AbstractBaseUser | None) -> Cluster:
    """Add the cluster in observe mode, with a GPU class for each kind of GPU that its nodes show.

    Nothing is kept of one that does not answer, or lets nobody in. Raises ServiceError at the field, in the
    words of ``cluster check``; a kubeconfig that would run a command is refused and never run.
    """
    _refuse_kubeconfig(credentials)
    tokens.check(credentials.token, tokens.ENGINE, "token")
    tokens.check(credentials.portal_token, tokens.PORTAL, "portal_token")
    folder = Path(settings.WEIR_CREDENTIALS) / name
    if Cluster.objects.filter(name=name).exists():
        raise ServiceError(
            "name_taken", f"There is a cluster {name}.", "Choose another name.", field="name"
        )
    try:
        with transaction.atomic():
            return _connect(name, folder, credentials, author)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _connect(
    name: str, folder: Path, credentials: Credentials, author: AbstractBaseUser | None
) -> Cluster:
    cluster = add(name, author=author, api_url=credentials.api_url)
    for field, path in _written(folder, credentials).items():
        setattr(cluster, field, path)
    cluster.context = credentials.context
    cluster.save()
    field = "kubeconfig" if credentials.kubeconfig else "token" if credentials.api_url else "way"
    for item in checkup.check(cluster):
        if item.topic == "connection" and item.grade is checkup.Grade.MISSING:
            raise ServiceError("no_connection_yet", item.sentence, item.remedy, field=field)
    find_classes(cluster)
    return cluster


def _written(folder: Path, credentials: Credentials) -> dict[str, str]:
    """Column of the cluster -> file, for what was pasted; only Weir's own user reads it."""
    texts = {"kubeconfig": credentials.kubeconfig, "token_file": credentials.token}
    texts |= {"portal_token_file": credentials.portal_token, "ca_file": credentials.ca}
    found = {}
    for column, text in texts.items():
        if not text.strip():
            continue
        found[column] = str(keep_secret(folder, column, text))
    return found


def keep_secret(folder: Path, name: str, text: str) -> Path:
    """The file that holds it, which only Weir's own user reads."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / name
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text.strip() + "\n")
    return path


def _refuse_kubeconfig(credentials: Credentials) -> None:
    text = credentials.kubeconfig
    if not text:
        return
    if len(text.encode()) > MOST_BYTES:
        _refuse("It is larger than a kubeconfig is.", "Paste one context alone.")
    try:
        told = read(text, "kubeconfig")
    except BrokenFileError as error:
        raise ServiceError("broken_file", str(error.faults[0]), field="kubeconfig") from error
    for kind, key, entry in _entries(told):
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


def _entries(told: Any) -> list[tuple[str, str, Mapping[str, Any]]]:
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    for kind, key in (("users", "user"), ("clusters", "cluster")):
        rows = told.get(kind) if isinstance(told, dict) else None
        for row in rows if isinstance(rows, list) else ():
            entry = row.get(key) if isinstance(row, dict) else None
            if isinstance(entry, dict):
                found.append((kind, str(row.get("name")), entry))
    return found


def _refuse(sentence: str, remedy: str) -> None:
    raise ServiceError("bad_kubeconfig", sentence, remedy, field="kubeconfig")
