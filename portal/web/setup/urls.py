from django.urls import path

from portal.web.setup import views

urlpatterns = [
    path("set-up/", views.set_up, name="set_up"),
    path("set-up/first/<str:key>/", views.first, name="first_admin"),
    path("set-up/<slug:step>/", views.step, name="set_up_step"),
]
