"""What people are told: one row a person and thing that happened, and how each wants to be told."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from scheduling.models import Cluster


class Kind(models.TextChoices):
    EVICTED = "evicted", "Evicted"
    STARTED = "started", "Started after a wait"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    SOON = "soon", "Will start soon"
    LATE = "late", "Waits longer than predicted"
    MOVED = "moved", "Predicted start lost"
    NEEDS_ME = "needs_me", "Request needs me"
    DECIDED = "decided", "Request decided"
    COMMENT = "comment", "Comment on a request"
    ENDS = "ends", "Boost or loan ends"
    BUDGET = "budget", "Budget 80, 100 %"
    IDLE = "idle", "GPUs idle"
    ALERT = "alert", "Alert"
    REPORT = "report", "Report of the week"


class When(models.TextChoices):
    AT_ONCE = "at_once", "At once"
    DIGEST = "digest", "Digest"
    OFF = "off", "Off"


class Way(models.TextChoices):
    """By which a person is told besides the bell."""

    MAIL = "mail", "Mail"
    WEBHOOK = "webhook", "Webhook"


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
    """When and by which ways a person wants to be told of one kind; without a row its default holds."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_preferences"
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    when = models.CharField(max_length=7, choices=When.choices)
    mail = models.BooleanField(null=True)
    webhook = models.BooleanField(null=True)
    """NULL, as for mail: as the kind's default has it."""

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


class Webhook(models.Model):
    """An address outside to which a person's notices go, signed with a secret of its own."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks"
    )
    name = models.CharField(max_length=63)
    address = models.CharField(max_length=500)
    sealed_secret = models.CharField(max_length=300)
    """Encrypted: it is shown once, and signing needs it again."""
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="webhook_one_a_name")]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"


class LetterState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    DEAD = "dead", "Dead"
    DROPPED = "dropped", "Dropped"


class Letter(models.Model):
    """One message to one place: of one notice, of a digest's, or of none, which is a test.

    A sender holds ``claim`` until ``claimed_until``, and only the holder of that very claim says what
    came of it.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="letters"
    )
    way = models.CharField(max_length=7, choices=Way.choices)
    webhook = models.ForeignKey(
        Webhook, on_delete=models.CASCADE, null=True, blank=True, related_name="letters"
    )
    key = models.CharField(max_length=63)
    """What it is for, once a place: 'notice 12', 'digest 2026112508', 'test 5f…'."""
    notices = models.ManyToManyField(Notice, related_name="letters")
    made_at = models.DateTimeField()
    due_at = models.DateTimeField()
    state = models.CharField(max_length=7, choices=LetterState.choices, default=LetterState.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    """Begun; one that a kill cut off counts."""
    claim = models.CharField(max_length=32, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    """When it was sent, died, or was dropped."""
    fault = models.CharField(max_length=200, blank=True)
    """Why the last try failed."""

    class Meta:
        ordering = ["-due_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "key"], condition=Q(webhook=None), name="letter_once_by_mail"
            ),
            models.UniqueConstraint(fields=["webhook", "key"], name="letter_once_a_webhook"),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="letter_waiting"),
            models.Index(fields=["state", "settled_at"], name="letter_settled"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.way} {self.key}"


class Arrival(models.Model):
    """What a demo's mail and webhooks brought, instead of going anywhere."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="arrivals"
    )
    way = models.CharField(max_length=7, choices=Way.choices)
    at = models.DateTimeField()
    to = models.CharField(max_length=500)
    subject = models.CharField(max_length=300, blank=True)
    body = models.TextField()
    headers = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.way} to {self.to}"
