from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    name = "scheduling"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from celery import current_app
        from celery.signals import beat_init, worker_init

        from scheduling.services.worker.clock import ClusterClock
        from scheduling.services.worker.consuming import ClusterQueues
        from scheduling.services.worker.hearts import HeartbeatStep

        worker_init.connect(_leave_pools_at_forks, weak=False)
        for began in (worker_init, beat_init):
            began.connect(_listen, weak=False)
        current_app.steps["consumer"].update((ClusterQueues, ClusterClock, HeartbeatStep))


def _leave_pools_at_forks(**_: object) -> None:
    from scheduling.services.worker.forking import register

    register()


def _listen(**_: object) -> None:
    from scheduling.services.worker.probes import listen_if_asked

    listen_if_asked()
