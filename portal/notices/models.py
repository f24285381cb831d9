"""What people are told: one row a person and thing that happened, and how each wants to be told."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from scheduling.models import Cluster


class Kind(models.TextChoices):
    EVICTED = "evicted", "Evicted"
    STARTED = "started", "Started after a wait"
    NEEDS_ME = "needs_me", "Request needs me"
    DECIDED = "decided", "Request decided"
    COMMENT = "comment", "Comment on a request"
    ENDS = "ends", "Boost ends"


class When(models.TextChoices):
    AT_ONCE = "at_once", "At once"
    DIGEST = "digest", "Digest"
    OFF = "off", "Off"


class Notice(models.Model):
    """One thing that one person is told. It is written with the event that it tells of, or not at all."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    """Cluster time of what happened."""
    due_at = models.DateTimeField()
    """Real time from which it shows: now, after quiet hours, or with the digest."""
    read_at = models.DateTimeField(null=True, blank=True)
    source = models.CharField(max_length=63)
    """What it tells of, once a person: 'event 12', 'eviction 7'."""
    about = models.CharField(max_length=300)
    """The thing, by which notices are grouped: 'R-131', the name of a workload."""
    title = models.CharField(max_length=300)
    lines = models.JSONField(default=list)
    """[[word, sentence]]: of an eviction why, what is lost, what comes next."""
    address = models.CharField(max_length=300, blank=True)
    """Path of the page where it can be looked at."""

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "source"], name="notice_once_a_person")
        ]
        indexes = [
            models.Index(fields=["user", "-at"], name="notice_of_person"),
            models.Index(
                fields=["user", "due_at"], condition=Q(read_at=None), name="notice_unread"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.title}"


class Preference(models.Model):
    """When a person wants to be told of one kind; without a row the kind's own default holds."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_preferences"
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    when = models.CharField(max_length=7, choices=When.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "kind"], name="notice_preference_one_a_kind")
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.kind} {self.when}"


class Hours(models.Model):
    """A person's hours, in their own time zone: of the digest, and those in which nothing is told."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_hours"
    )
    digest_hour = models.PositiveSmallIntegerField(default=8)
    quiet_from = models.PositiveSmallIntegerField(null=True, blank=True)
    quiet_until = models.PositiveSmallIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user}: digest at {self.digest_hour}"


class Cursor(models.Model):
    """How far the ledger of a cluster has been told: whoever looks further holds the row."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+")
    eviction = models.BigIntegerField(default=0)
    transition = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.cluster}: {self.eviction}, {self.transition}"
