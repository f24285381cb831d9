from django.urls import path

from portal.web.future import views

urlpatterns = [path("queues/<str:queue>/future/", views.queue_future, name="queue_future")]
