from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "portal.accounts"

    def ready(self) -> None:
        from portal.accounts import signals  # noqa: F401 - connects them
