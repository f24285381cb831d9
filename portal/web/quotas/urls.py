"""What a team lead divides, and the tree it hangs on."""

from django.urls import path

from portal.web.quotas import beside, history, tree, views

urlpatterns = [
    path("quotas/", views.index, name="quotas_index"),
    path("quotas/<str:queue>/", views.quotas, name="quotas"),
    path("quotas/<str:queue>/preview/", beside.preview, name="quota_preview"),
    path("quotas/<str:queue>/replay/", beside.replay, name="quota_replay"),
    path("quotas/<str:queue>/replay/<int:pk>/", beside.replay_state, name="quota_replay_state"),
    path(
        "quotas/<str:queue>/replay/<int:pk>/cancel/",
        beside.replay_cancel,
        name="quota_replay_cancel",
    ),
    path("quotas/<str:queue>/changes/", history.changes, name="quota_changes"),
    path("quotas/<str:queue>/changes/<int:pk>/", history.change, name="quota_change"),
    path("quotas/<str:queue>/changes/<int:pk>/revert/", history.revert, name="quota_revert"),
    path("quotas/<str:queue>/add/", tree.add, name="queue_add"),
    path("quotas/<str:queue>/edit/", tree.edit, name="queue_edit"),
    path("quotas/<str:queue>/delete/", tree.delete, name="queue_delete"),
]
