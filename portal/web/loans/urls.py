from django.urls import path

from portal.web.loans import acting, making, views

urlpatterns = [
    path("loans/", views.index, name="loans"),
    path("loans/new/", making.new, name="loan_new"),
    path("loans/<int:pk>/", views.one, name="loan"),
    path("loans/<int:pk>/<slug:verb>/", acting.act, name="loan_act"),
    path("loans/offers/<int:pk>/withdraw/", acting.withdraw_offer, name="loan_offer_withdraw"),
]
