"""Teams: people bound to a queue."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from portal.accounts.models import Persona
from portal.teams.directory_models import (
    DirectoryGroup,
    DirectoryPerson,
    GroupRule,
    SeenGroups,
    ServiceAccount,
)

__all__ = [
    "DirectoryGroup",
    "DirectoryPerson",
    "GroupRule",
    "Membership",
    "SeenGroups",
    "ServiceAccount",
    "SubmitTemplate",
    "Submitted",
    "Team",
]


class Team(models.Model):
    """People who share one queue and everything below it."""

    name = models.CharField(max_length=63, unique=True)
    queue = models.OneToOneField("scheduling.Queue", on_delete=models.PROTECT, related_name="team")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class MembershipQuerySet(models.QuerySet["Membership"]):
    def in_force(self, at: datetime) -> MembershipQuerySet:
        """Those that have not ended at ``at``."""
        return self.filter(Q(until=None) | Q(until__gt=at))

    def lasting(self, until: datetime | None) -> MembershipQuerySet:
        """Those that go on at least ``until`` then; None is for good."""
        return (
            self.filter(Q(until=None) | Q(until__gte=until)) if until else self.filter(until=None)
        )


class Membership(models.Model):
    """A person in a team, with the persona that says what they may do there."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    persona = models.ForeignKey(Persona, on_delete=models.PROTECT, related_name="memberships")
    rule = models.ForeignKey(
        GroupRule, on_delete=models.CASCADE, null=True, blank=True, related_name="memberships"
    )
    """That gave it; NULL: a person did, and no group takes it away."""
    since = models.DateTimeField(default=timezone.now)
    until = models.DateTimeField(null=True, blank=True)
    """When it ends by itself; NULL is open."""
    given_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """NULL: by no person, such as the first administrator's."""

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering = ["team", "user"]
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="membership_unique")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}: {self.persona}"


class SubmitTemplate(models.Model):
    """Values of the submit form that a person keeps under a name, for themselves or for their team."""

    cluster = models.ForeignKey("scheduling.Cluster", on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="submit_templates"
    )
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="submit_templates"
    )
    """Whose members may use it; NULL is the owner alone."""
    name = models.CharField(max_length=63)
    values = models.JSONField(default=dict)
    """Field -> text, as it is typed."""
    saved_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "owner", "name"], name="submit_template_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Submitted(models.Model):
    """The manifest that a person submitted, to be cloned when the object is long gone."""

    cluster = models.ForeignKey("scheduling.Cluster", on_delete=models.CASCADE, related_name="+")
    uid = models.CharField(max_length=64)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="submitted"
    )
    manifest = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="submitted_uid_unique")
        ]
        indexes = [models.Index(fields=["cluster", "user", "-id"], name="submitted_last")]

    def __str__(self) -> str:
        return self.uid
