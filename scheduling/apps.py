from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"
    default = True
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from celery import current_app

        from scheduling.services.worker import ending  # noqa: F401 - connects it
        from scheduling.services.worker.clock import ClusterClock
        from scheduling.services.worker.consuming import ClusterQueues
        from scheduling.services.worker.hearts import Beating

        current_app.steps["consumer"].update((ClusterQueues, ClusterClock, Beating))


class FilesConfig(AppConfig):
    """The commands alone, without a model: for those that read files."""

    name = "scheduling"

    def import_models(self) -> None:
        self.models = {}
