from django.apps import AppConfig


class StreamsConfig(AppConfig):
    name = "portal.streams"
    default_auto_field = "django.db.models.BigAutoField"
