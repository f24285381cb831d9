"""What has happened and who is still to be told. Rows are gone once everybody was."""

from __future__ import annotations

from django.db import models

from scheduling.models.clusters import Cluster


class Announcement(models.Model):
    """One thing that happened, as it stood at that moment."""

    kind = models.CharField(max_length=63)
    """noun.verb"""
    at = models.DateTimeField()
    """Real time."""
    actor = models.CharField(max_length=150, blank=True)
    """User name; empty: nobody, such as the engine."""
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="+")
    queue = models.CharField(max_length=500, blank=True)
    """Path of the queue that it is about; empty: the root, or none."""
    subject = models.CharField(max_length=300, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    refused = models.BooleanField(default=False)
    origin = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}"


class Delivery(models.Model):
    """One subscriber of an announcement who has not had it yet."""

    announcement = models.ForeignKey(
        Announcement, on_delete=models.CASCADE, related_name="deliveries"
    )
    subscriber = models.CharField(max_length=200)
    """Dotted path of a function of one announcement."""
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["announcement", "subscriber"], name="delivery_once_a_subscriber"
            )
        ]

    def __str__(self) -> str:
        return f"{self.announcement} to {self.subscriber}"
