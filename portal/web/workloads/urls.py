from django.urls import path

from portal.web.workloads import actions, detail, lists, sooner, submit

urlpatterns = [
    path("work/", lists.my_work, name="my_work"),
    path("workloads/", lists.workloads, name="workloads"),
    path("submit/", submit.submit, name="submit"),
    path("submit/preview/", submit.preview, name="submit_preview"),
    path("w/<str:uid>/", detail.workload, name="workload"),
    path("w/<str:uid>/sooner/", sooner.sooner, name="sooner"),
    path("w/<str:uid>/cancel/", actions.cancel, name="cancel"),
    path("w/<str:uid>/hold/", actions.hold, name="hold"),
    path("w/<str:uid>/release/", actions.release, name="release"),
]
