"""Who signs in, and the named bundles of what they may do."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from django.contrib.auth.models import AbstractUser
from django.db import models
from simple_history.models import HistoricalRecords

from scheduling.services.errors import ServiceError


class User(AbstractUser):
    """A person. What they may do follows from their memberships; superusers may do all."""

    display_time_zone = models.CharField(max_length=60, blank=True)

    @property
    def initials(self) -> str:
        names = [self.first_name, self.last_name] if self.first_name else self.username.split(".")
        return "".join(name[:1] for name in names if name).upper()[:2]


class Persona(models.Model):
    """What a member may do, and the class of service of what they submit."""

    name = models.CharField(max_length=63, unique=True)
    may_submit = models.BooleanField(default=False)
    may_edit_quotas = models.BooleanField(default=False)
    """Of the queues below the team's own queue."""
    may_approve = models.BooleanField(default=False)
    may_operate = models.BooleanField(default=False)
    """Sees and operates every cluster."""
    may_read_costs = models.BooleanField(default=False)

    priority_classes = models.ManyToManyField("scheduling.PriorityClass", blank=True)
    gpu_classes = models.ManyToManyField("scheduling.GpuClass", blank=True)
    """Empty: every class."""
    max_gpus_per_workload = models.PositiveIntegerField(null=True, blank=True)
    """Milli-GPU; NULL is unlimited."""
    max_run_time_s = models.PositiveIntegerField(null=True, blank=True)
    preemptible_only = models.BooleanField(default=False)

    history = HistoricalRecords()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def may(self) -> list[str]:
        """What its members may do, in words."""
        words = {
            "submit": self.may_submit,
            "edit quotas": self.may_edit_quotas,
            "approve": self.may_approve,
            "operate": self.may_operate,
            "read costs": self.may_read_costs,
        }
        return [word for word, granted in words.items() if granted]


MOST_TOKENS = 20
"""API tokens that a person may have: more are forgotten ones."""


class ApiToken(models.Model):
    """A bearer token of a person. Only its SHA-256 is kept: the token is shown once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=63)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"

    @staticmethod
    def digest_of(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    @classmethod
    def issue(
        cls, user: User, name: str, *, expires_at: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """A new token of ``user`` and its plain text, which cannot be had again.

        Raises ServiceError (``too_many_tokens``) when they have ``MOST_TOKENS``.
        """
        if user.api_tokens.count() >= MOST_TOKENS:
            sentence = f"You have {MOST_TOKENS} tokens."
            raise ServiceError("too_many_tokens", sentence, "Revoke one that nothing uses first.")
        plain = f"weir_{secrets.token_urlsafe(32)}"
        digest = cls.digest_of(plain)
        return cls.objects.create(user=user, name=name, digest=digest, expires_at=expires_at), plain
