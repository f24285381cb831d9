from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "portal.reports"
    default_auto_field = "django.db.models.BigAutoField"
