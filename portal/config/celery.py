"""The Celery application. One Celery queue per cluster keeps a slow cluster from delaying another."""

import os
import sys

from celery import Celery
from celery.signals import import_modules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

app = Celery("weir", task_cls="scheduling.services.worker.budget:BudgetedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")


@import_modules.connect(sender=app, weak=False)
def _look_first(**_: object) -> None:
    """After Django is set up and before tasks are found: receivers go in the order of these lines."""
    from scheduling.services.worker import first_look

    first_look.begin(sys.argv)


app.autodiscover_tasks()
