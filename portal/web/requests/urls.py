from django.urls import path

from portal.web.requests import asking, rules, verbs, views

ONE = "requests/<int:pk>"

urlpatterns = [
    path("requests/", views.index, name="requests"),
    path("requests/new/", asking.new, name="request_new"),
    path("requests/new/preview/", asking.preview, name="request_preview"),
    path("requests/rules/", rules.rules, name="request_rules"),
    path(f"{ONE}/", views.one, name="request"),
    path(f"{ONE}/replay/", views.replay, name="request_replay"),
    path(f"{ONE}/edit/", asking.edit, name="request_edit"),
    path(f"{ONE}/submit/", verbs.submit, name="request_submit"),
    path(f"{ONE}/forward/", verbs.forward, name="request_forward"),
    path(f"{ONE}/approve/", verbs.approve, name="request_approve"),
    path(f"{ONE}/ask-changes/", verbs.ask_changes, name="request_ask_changes"),
    path(f"{ONE}/reject/", verbs.reject, name="request_reject"),
    path(f"{ONE}/withdraw/", verbs.withdraw, name="request_withdraw"),
    path(f"{ONE}/revoke/", verbs.revoke, name="request_revoke"),
    path(f"{ONE}/renew/", verbs.renew, name="request_renew"),
    path(f"{ONE}/comment/", verbs.comment, name="request_comment"),
]
