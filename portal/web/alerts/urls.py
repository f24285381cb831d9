from django.urls import path

from portal.web.alerts import views

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/preview/", views.preview, name="alert_preview"),
    path("alerts/<int:pk>/", views.rule, name="alert_rule"),
    path("alerts/<int:pk>/delete/", views.delete, name="alert_delete"),
    path("alerts/<int:pk>/acknowledge/", views.acknowledge, name="alert_acknowledge"),
]
