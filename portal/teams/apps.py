from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "portal.teams"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from portal.teams import directory  # noqa: F401 - connects it to sign-in
