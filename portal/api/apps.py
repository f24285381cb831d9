from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from portal.api import schema  # noqa: F401 - registers how tokens stand in the schema
