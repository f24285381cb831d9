from django.urls import path

from portal.web.frame.live import live
from portal.web.frame.search import search
from portal.web.overview import views

urlpatterns = [
    path("", views.overview, name="overview"),
    path("queues/", views.queues, name="queues"),
    path("queues/<str:queue>/", views.queue, name="queue"),
    path("live", live, name="live"),
    path("search", search, name="search"),
]
