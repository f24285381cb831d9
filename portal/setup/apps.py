from django.apps import AppConfig


class SetupConfig(AppConfig):
    name = "portal.setup"
    default_auto_field = "django.db.models.BigAutoField"
