from django.apps import AppConfig


class ConfigurationConfig(AppConfig):
    name = "portal.config"
    label = "configuration"

    def ready(self) -> None:
        from portal.config import checks  # noqa: F401 - registers them
