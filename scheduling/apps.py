from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from celery import current_app

        from scheduling.services.worker import ending  # noqa: F401 - connects it
        from scheduling.services.worker.clock import ClusterClock
        from scheduling.services.worker.consuming import ClusterQueues
        from scheduling.services.worker.hearts import Beating

        current_app.steps["consumer"].update((ClusterQueues, ClusterClock, Beating))
