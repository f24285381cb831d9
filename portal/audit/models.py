"""The audit log: entries that are added and never changed, each sealed with the digest of the one before."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models


class Via(models.TextChoices):
    PAGE = "page", "page"
    API = "api", "API"
    COMMAND = "command", "command"
    FILE = "file", "file"
    ENGINE = "engine", "engine"


class EntryQuerySet(models.QuerySet["AuditEntry"]):
    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("entries of the audit log are never changed")

    def delete(self) -> NoReturn:
        raise TypeError("entries of the audit log are never deleted")


class AuditEntry(models.Model):
    """One thing that was done, or tried and refused. Names are kept as text: they outlive their rows."""

    number = models.PositiveBigIntegerField(primary_key=True)
    """From 1 on, without a gap."""
    at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=63)
    refused = models.BooleanField(default=False)
    actor = models.CharField(max_length=150, blank=True)
    """Empty: the engine, or nobody known."""
    allowed_as = models.CharField(max_length=200, blank=True)
    """Persona and team that allowed it, at that moment."""
    cluster = models.CharField(max_length=50, blank=True)
    queue = models.CharField(max_length=500, blank=True)
    subject = models.CharField(max_length=300, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    via = models.CharField(max_length=7, choices=Via.choices)
    address = models.CharField(max_length=300, blank=True)
    """Whence: address of the browser, name of the token, path of the file."""
    request_id = models.CharField(max_length=36, blank=True)
    previous = models.CharField(max_length=64)
    """Digest of the entry before; of the first, 64 zeros."""
    digest = models.CharField(max_length=64, unique=True)

    objects = EntryQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["actor", "-number"], name="audit_by_actor"),
            models.Index(fields=["kind", "-number"], name="audit_by_kind"),
            models.Index(fields=["cluster", "queue"], name="audit_by_queue"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.kind} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("entries of the audit log are never changed")
        super().save(*args, force_insert=True, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("entries of the audit log are never deleted")


class ChainHead(models.Model):
    """The last entry: one row, locked while an entry is added."""

    number = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.number} {self.digest[:8]}"
