"""The Celery application. One Celery queue per cluster keeps a slow cluster from delaying another."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")

app = Celery("weir", task_cls="scheduling.services.worker.budget:Budgeted")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
