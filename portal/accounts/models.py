"""People who sign in, and the named bundles of what they may do."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils import timezone

from portal.accounts.capabilities import MEANINGS, Capability, ordered
from scheduling.services.errors import ServiceError


class User(AbstractUser):
    """A person. What they may do follows from their memberships; superusers may do all."""

    display_time_zone = models.CharField(max_length=60, blank=True)
    made_by = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The person who saw its first password; NULL for one who came by themselves, or was made by a
    command."""

    @property
    def initials(self) -> str:
        names = [self.first_name, self.last_name] if self.first_name else self.username.split(".")
        return "".join(name[:1] for name in names if name).upper()[:2]


class Persona(models.Model):
    """What a member may do, and the class of service of what they submit."""

    name = models.CharField(max_length=63, unique=True)
    grants = models.JSONField(default=dict, blank=True)
    """Capability -> reach: ``portal.accounts.capabilities``."""
    approves_gpus = models.PositiveIntegerField(null=True, blank=True)
    """Milli-GPU of a request that members may approve at most; NULL is any."""

    priority_classes = models.ManyToManyField("scheduling.PriorityClass", blank=True)
    """Empty: every class, as for the GPU classes."""
    gpu_classes = models.ManyToManyField("scheduling.GpuClass", blank=True)
    max_gpus_per_workload = models.PositiveIntegerField(null=True, blank=True)
    """Milli-GPU; NULL is unlimited, as for the two limits below."""
    max_gpus_at_once = models.PositiveIntegerField(null=True, blank=True)
    """Milli-GPU that one member's work may hold in the team's queues."""
    max_run_time_s = models.PositiveIntegerField(null=True, blank=True)
    preemptible_only = models.BooleanField(default=False)
    interactive = models.BooleanField(default=True)
    """Whether it may be of a priority class for interactive work."""

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def may(self) -> list[str]:
        """What its members may do, in words."""
        return [MEANINGS[Capability(name)].name.lower() for name in ordered(self.grants)]


class Session(AbstractBaseSession):
    """A session, keyed by the SHA-256 of what the browser holds: a copy of this table signs nobody in."""

    session_key = models.CharField(max_length=64, primary_key=True, editable=False)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    """NULL before anybody has signed in."""
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    """When a person last did something, to the minute; pages that refresh themselves do not count."""
    address = models.CharField(max_length=45, blank=True)
    browser = models.CharField(max_length=63, blank=True)
    how = models.CharField(max_length=63, blank=True)
    """By what the person showed who they are, in words."""

    class Meta:
        ordering = ["-seen_at"]


class KnownAddress(models.Model):
    """Where a person has signed in from: guesses made elsewhere do not keep them out here."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="known_addresses")
    address = models.CharField(max_length=45)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "address"], name="one_known_address")
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.address}"


class SignInTry(models.Model):
    """A try at a password that has not succeeded; forgotten after the longest wait."""

    name_digest = models.CharField(max_length=64)
    """Of the name as typed: people type passwords there."""
    address = models.CharField(max_length=45)
    at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["name_digest", "at"], name="try_by_name"),
            models.Index(fields=["address", "at"], name="try_by_address"),
        ]

    def __str__(self) -> str:
        return f"{self.address} at {self.at:%H:%M:%S}"


MOST_TOKENS = 20
"""API tokens that a person may have: more are forgotten ones."""
LONGEST_TOKEN_DAYS = 365


class Scope(models.TextChoices):
    """What a token is for. Every token may read; none may do what its person may not."""

    READ = "read", "read"
    WORK = "work", "submit, hold and cancel work"
    QUOTAS = "quotas", "change quotas"
    ALL = "all", "everything you may do"
    DIRECTORY = "directory", "people and groups by SCIM"
    """Of service accounts alone, given by an admin in a session; no other scope holds it."""


def every_scope() -> list[str]:
    return [Scope.ALL.value]


class ApiToken(models.Model):
    """A bearer token of a person. Only its SHA-256 is kept: the token is shown once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=63)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(default=every_scope)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    """To the minute."""
    last_address = models.CharField(max_length=45, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"

    @staticmethod
    def digest_of(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    def covers(self, scope: Scope) -> bool:
        if scope == Scope.DIRECTORY:
            return scope.value in self.scopes
        return scope == Scope.READ or bool({scope.value, Scope.ALL.value} & set(self.scopes))

    @property
    def purposes(self) -> list[str]:
        """Its scopes in words; everything holds the rest."""
        wide = [Scope.ALL, Scope.DIRECTORY]
        named = wide if self.covers(Scope.ALL) else list(Scope)
        return [scope.label for scope in named if scope.value in self.scopes]

    @classmethod
    def issue(
        cls,
        user: User,
        name: str,
        *,
        scopes: Iterable[Scope] = (Scope.ALL,),
        expires_at: datetime | None = None,
        endless: bool = False,
    ) -> tuple[ApiToken, str]:
        """A new token of ``user`` and its plain text, which cannot be had again.

        Ends after ``WEIR_TOKEN_DAYS`` unless told. Raises ServiceError: ``too_many_tokens`` when they
        have ``MOST_TOKENS``, ``endless_token`` where every token has to end.
        """
        if user.api_tokens.count() >= MOST_TOKENS:
            sentence = f"You have {MOST_TOKENS} tokens."
            raise ServiceError("too_many_tokens", sentence, "Revoke one that nothing uses first.")
        if endless and not settings.WEIR_ENDLESS_TOKENS:
            raise ServiceError(
                "endless_token", "Every token has to end.", "Say for how many days.", field="days"
            )
        plain = f"weir_{secrets.token_urlsafe(32)}"
        token = cls.objects.create(
            user=user,
            name=name,
            digest=cls.digest_of(plain),
            scopes=sorted({Scope.READ.value, *(scope.value for scope in scopes)}),
            expires_at=cls.end_of(expires_at, endless),
        )
        return token, plain

    @staticmethod
    def end_of(end: datetime | None, endless: bool) -> datetime | None:
        """When a token ends of which that is asked; None is never."""
        if end is None and not endless:
            return timezone.now() + timedelta(days=settings.WEIR_TOKEN_DAYS)
        return end
