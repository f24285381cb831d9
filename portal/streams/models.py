"""How far each stream has gone out, and who sends it now."""

from __future__ import annotations

from django.db import models

from scheduling.models import Cluster


class Name(models.TextChoices):
    AUDIT = "audit", "Audit records"
    SECURITY = "security", "Security events"
    USAGE = "usage", "Usage"


class Stream(models.Model):
    """One row a stream that was ever set. A sender holds ``claim`` until ``claimed_until``, and only
    the holder of that very claim moves the cursor."""

    name = models.CharField(max_length=8, choices=Name.choices, primary_key=True)
    number = models.PositiveBigIntegerField(default=0)
    """Of the last entry of the audit log that was sent or passed over; usage has ``Position``."""
    claim = models.CharField(max_length=32, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    """That failed since the last one that did not."""
    due_at = models.DateTimeField(null=True, blank=True)
    """Not before; NULL at once."""
    failing_since = models.DateTimeField(null=True, blank=True)
    fault = models.CharField(max_length=200, blank=True)
    """Why the last try failed."""
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} up to {self.number}"


class Position(models.Model):
    """How far the usage of a cluster has gone out: by hour, in it by row."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="+")
    hour = models.DateTimeField()
    row = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.cluster} up to {self.hour:%F %R}, {self.row}"
