"""What the organisation's directory says of people here, and accounts that are no people."""

from __future__ import annotations

from django.conf import settings
from django.db import models

LONGEST_GROUP = 255


class GroupRule(models.Model):
    """People in a group of the directory are in a team, with a persona, from their next sign-in on."""

    group = models.CharField(max_length=LONGEST_GROUP)
    """As the provider's claim says it, letter by letter."""
    team = models.ForeignKey("teams.Team", on_delete=models.CASCADE, related_name="group_rules")
    persona = models.ForeignKey("accounts.Persona", on_delete=models.PROTECT, related_name="+")
    order = models.PositiveIntegerField(default=100)
    """Of the rules of one team that fit a person the one with the lowest order gives the persona."""

    class Meta:
        ordering = ["team", "order", "pk"]
        constraints = [models.UniqueConstraint(fields=["group", "team"], name="group_rule_unique")]

    def __str__(self) -> str:
        return f"{self.group}: {self.persona} in {self.team}"


class SeenGroups(models.Model):
    """The groups of a person as the provider said at their last sign-in, so that a new rule acts at once."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="seen_groups"
    )
    names = models.JSONField(default=list)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user}: {len(self.names)} groups"


class ServiceAccount(models.Model):
    """A program that acts for a team. It has an account without any way to sign in, and tokens."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="service_account"
    )
    team = models.ForeignKey(
        "teams.Team", on_delete=models.CASCADE, related_name="service_accounts"
    )
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    made_at = models.DateTimeField(auto_now_add=True)
    purpose = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["team", "user__username"]

    def __str__(self) -> str:
        return self.user.get_username()


class DirectoryPerson(models.Model):
    """A person whom the directory looks after by SCIM."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="directory_person"
    )
    external_id = models.CharField(max_length=LONGEST_GROUP, blank=True, db_index=True)
    """The directory's own key of them."""
    left = models.BooleanField(default=False)
    """The directory deactivated them, so it may activate them again; whom an admin deactivated it may not."""
    gone = models.BooleanField(default=False)
    """The directory deleted them: it finds them no more."""
    made_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.user} as {self.external_id or 'nobody'}"


class DirectoryGroup(models.Model):
    """A group as the directory keeps it by SCIM; what it gives the rules say, by its name."""

    name = models.CharField(max_length=LONGEST_GROUP, unique=True)
    external_id = models.CharField(max_length=LONGEST_GROUP, blank=True, db_index=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="directory_groups"
    )
    made_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.name
