"""What was answered to a call that its caller may send again."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class KeptAnswer(models.Model):
    """One key of one person: digests of the key and of what was asked, and the answer once there is one.

    The answer may hold a secret that is shown once, so it is enciphered with the key, which is not kept.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="kept_answers"
    )
    key = models.CharField(max_length=64)
    asked = models.CharField(max_length=64)
    at = models.DateTimeField(db_index=True)
    answer = models.TextField(blank=True)
    """Empty while the call is carried out, and for good where it was cut off."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once_a_user")
        ]

    def __str__(self) -> str:
        return f"{self.user_id}:{self.key[:8]}"
