from django.urls import path

from portal.web.audit import views

urlpatterns = [
    path("audit/", views.audit, name="audit"),
    path("audit.csv", views.audit_csv, name="audit_csv"),
]
