"""Teams: people bound to a queue."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from simple_history.models import HistoricalRecords

from portal.accounts.models import Persona


class Team(models.Model):
    """People who share one queue and everything below it."""

    name = models.CharField(max_length=63, unique=True)
    queue = models.OneToOneField("scheduling.Queue", on_delete=models.PROTECT, related_name="team")

    history = HistoricalRecords()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person in a team, with the persona that says what they may do there."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    persona = models.ForeignKey(Persona, on_delete=models.PROTECT, related_name="memberships")

    history = HistoricalRecords()

    class Meta:
        ordering = ["team", "user"]
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="membership_unique")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}: {self.persona}"
