"""What a team lead divides, and the tree it hangs on."""

from django.urls import path

from portal.web.quotas import tree, views

urlpatterns = [
    path("quotas/", views.index, name="quotas_index"),
    path("quotas/<str:queue>/", views.quotas, name="quotas"),
    path("quotas/<str:queue>/preview/", views.preview, name="quota_preview"),
    path("quotas/<str:queue>/changes/", views.changes, name="quota_changes"),
    path("quotas/<str:queue>/changes/<int:pk>/revert/", views.revert, name="quota_revert"),
    path("quotas/<str:queue>/add/", tree.add, name="queue_add"),
    path("quotas/<str:queue>/edit/", tree.edit, name="queue_edit"),
    path("quotas/<str:queue>/delete/", tree.delete, name="queue_delete"),
]
