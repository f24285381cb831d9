"""The first way into an empty installation."""

from __future__ import annotations

from django.db import models


class Invitation(models.Model):
    """A link with which somebody becomes the first admin, once. Only the SHA-256 of its key is kept."""

    digest = models.CharField(max_length=64, unique=True)
    ends_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"until {self.ends_at:%F %T}"
