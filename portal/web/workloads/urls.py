from django.urls import path

from portal.web.mine import views as home
from portal.web.workloads import actions, bulk, change, detail, lists, logs, sooner, submit

urlpatterns = [
    path("work/", home.my_work, name="my_work"),
    path("work/list/", lists.own_workloads, name="own_workloads"),
    path("workloads/", lists.workloads, name="workloads"),
    path("workloads/act/", bulk.act_on_marked, name="workloads_act"),
    path("submit/", submit.submit, name="submit"),
    path("submit/preview/", submit.preview, name="submit_preview"),
    path("submit/templates/", submit.keep_template, name="template_keep"),
    path("submit/templates/<int:pk>/delete/", submit.drop_template, name="template_drop"),
    path("w/<str:uid>/", detail.workload, name="workload"),
    path("w/<str:uid>/sooner/", sooner.sooner, name="sooner"),
    path("w/<str:uid>/log/", logs.log, name="log"),
    path("w/<str:uid>/events/", logs.events, name="events"),
    path("w/<str:uid>/cancel/", actions.cancel, name="cancel"),
    path("w/<str:uid>/change/", change.change, name="change"),
    path("w/<str:uid>/hold/", actions.hold, name="hold"),
    path("w/<str:uid>/release/", actions.release, name="release"),
]
