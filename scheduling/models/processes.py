"""The processes of the installation as they last said of themselves. Times are real, not of a cluster."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    WEB = "web", "Web server"
    ENGINE = "engine", "Engine worker"
    WORKER = "worker", "General worker"
    STUDY = "study", "Study worker"
    BEAT = "beat", "Beat"


class Process(models.Model):
    """One process in one of its roles: a process that does everything has a row for each."""

    role = models.CharField(max_length=6, choices=Role.choices)
    name = models.CharField(max_length=280)
    """Host and number: there is no other of that name at a time."""
    host = models.CharField(max_length=253)
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    held = models.JSONField(default=dict)
    """Of an engine worker: name of each cluster -> {lag_s, objects, leads, lease_s} of what it holds."""
    memory_mib = models.PositiveIntegerField(null=True)
    """Of the process and what it started; NULL where the kernel does not tell."""
    cpu = models.FloatField(null=True)
    """Cores that it kept busy between its last two beats; NULL before the second."""

    class Meta:
        ordering = ["role", "name"]
        constraints = [models.UniqueConstraint(fields=["role", "name"], name="process_unique")]

    def __str__(self) -> str:
        return f"{self.role} {self.name}"


class Lane(models.Model):
    """A Celery queue as it was asked for last."""

    name = models.CharField(max_length=100, unique=True)
    waiting = models.PositiveIntegerField(null=True)
    """Tasks in it; NULL where the broker did not answer."""
    asked_at = models.DateTimeField(null=True)
    served_at = models.DateTimeField(null=True)
    """When a worker took the last heartbeat out of it."""

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
