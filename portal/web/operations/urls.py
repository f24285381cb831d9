from django.urls import path

from portal.web.operations import views

urlpatterns = [path("cluster/", views.cluster, name="cluster")]
