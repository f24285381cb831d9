from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "portal.teams"

    def ready(self) -> None:
        from portal.teams import directory  # noqa: F401 - connects it to sign-in
