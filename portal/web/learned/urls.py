from django.urls import path

from portal.web.learned import views

urlpatterns = [
    path("learned-policy/", views.learned, name="learned"),
    path("learned-policy/switch/", views.switch, name="learned_switch"),
    path("learned-policy/<int:pk>/withdraw/", views.withdraw, name="learned_withdraw"),
]
