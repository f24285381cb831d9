from django.apps import AppConfig


class IdempotencyConfig(AppConfig):
    name = "portal.idempotency"
    label = "idempotency"
    default_auto_field = "django.db.models.BigAutoField"
