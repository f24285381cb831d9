from django.urls import path

from portal.web.alerts import more, views

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/preview/", views.preview, name="alert_preview"),
    path("alerts/past/", more.past, name="alert_past"),
    path("alerts/past.csv", more.past_csv, name="alert_past_csv"),
    path("alerts/<int:pk>/test/", more.test, name="alert_test"),
    path("alerts/<int:pk>/", views.rule, name="alert_rule"),
    path("alerts/<int:pk>/delete/", views.delete, name="alert_delete"),
    path("alerts/<int:pk>/acknowledge/", views.acknowledge, name="alert_acknowledge"),
]
