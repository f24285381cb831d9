"""What opens a cluster or its metrics: enciphered in the database, so that every process has it.

A column of the cluster that names a file may hold the reference of a credential instead. A credential that is
pasted anew has another reference, by which whoever holds a connection sees that it is reached otherwise.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from cryptography.fernet import InvalidToken
from django.db import models, transaction

from scheduling.models.ciphers import cipher
from scheduling.models.clusters import Cluster

PURPOSE = "weir credentials of clusters"
KEPT = "kept:"
"""Begins a reference; no absolute path does."""


class LostCredentialError(OSError):
    """As of a file that cannot be read: it is gone, or was enciphered with a key that is gone."""


class Credential(models.Model):
    """One of a cluster: ``name`` is the column of the cluster that refers to it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="credentials")
    name = models.CharField(max_length=30)
    reference = models.CharField(max_length=40, unique=True)
    sealed = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="credential_unique")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.cluster_id}"


@transaction.atomic
def keep(cluster: Cluster, name: str, text: str) -> str:
    """The reference of ``text``, for column ``name``; what was kept for that is gone. Empty of no text."""
    Credential.objects.filter(cluster=cluster, name=name).delete()
    if not text.strip():
        return ""
    reference = f"{KEPT}{secrets.token_hex(12)}"
    sealed = cipher(PURPOSE).encrypt(text.strip().encode()).decode()
    Credential.objects.create(cluster=cluster, name=name, reference=reference, sealed=sealed)
    return reference


def is_kept(place: str) -> bool:
    return place.startswith(KEPT)


def read(place: str) -> str:
    """What is kept under a reference, or in a file; empty of no place. Raises OSError with what to do."""
    if not place:
        return ""
    if not is_kept(place):
        return Path(place).read_text(encoding="utf-8").strip()
    found = Credential.objects.filter(reference=place).first()
    if found is None:
        raise LostCredentialError("Its key was replaced a moment ago, or is gone: paste it again")
    try:
        return cipher(PURPOSE).decrypt(found.sealed.encode()).decode()
    except InvalidToken:
        raise LostCredentialError(
            "It was enciphered with another key: name that in WEIR_SECRET_KEY_FALLBACKS, or paste"
            " it again"
        ) from None
