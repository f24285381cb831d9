from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "portal.teams"

    def ready(self) -> None:
        from portal.teams import directory, ldap_reading  # noqa: F401 - connects them to sign-in
