"""Addresses of the API, below /api/v1/. No address ends in a slash."""

from django.urls import path, re_path

from portal.api import (
    access,
    adapting,
    alerts,
    audit,
    classes,
    clusters,
    consolidations,
    docs,
    foresight,
    ledger,
    loans,
    notices,
    people,
    personas,
    processes,
    queues,
    quotas,
    reports,
    requests,
    studies,
    teams,
    workload_acts,
    workloads,
)
from portal.reports.kinds import REPORTS

app_name = "api"

CLUSTER = "clusters/<slug:cluster>"
REQUEST = f"{CLUSTER}/requests/<int:pk>"

urlpatterns = [
    path("me", people.Me.as_view(), name="me"),
    *people.Tokens.addresses(),
    *access.Sessions.addresses(),
    *access.GroupRules.addresses(),
    *access.ServiceAccounts.addresses(),
    *access.ServiceTokens.addresses(),
    *people.People.addresses(),
    *teams.Teams.addresses(),
    path("teams/<str:name>/members/<str:username>", teams.TeamMember.as_view(), name="team_member"),
    *personas.Personas.addresses(),
    path("processes", processes.ProcessList.as_view(), name="processes"),
    path("streams", processes.StreamList.as_view(), name="streams"),
    path("notices", notices.NoticeList.as_view(), name="notices"),
    path("notices/read", notices.NoticesRead.as_view(), name="notices_read"),
    path("notices/preferences", notices.NoticePreferences.as_view(), name="notice_preferences"),
    *notices.Webhooks.addresses(),
    path("notices/webhooks/<int:pk>/test", notices.WebhookTest.as_view(), name="webhook_test"),
    *notices.DeadLetters.addresses(),
    path("audit", audit.AuditList.as_view(), name="audit"),
    path("audit/verdict", audit.AuditVerdict.as_view(), name="audit_verdict"),
    *classes.PriorityClasses.addresses(),
    *clusters.Clusters.addresses(),
    *classes.GpuClasses.addresses(),
    path(f"{CLUSTER}/policy", clusters.PolicyView.as_view(), name="policy"),
    path(f"{CLUSTER}/adaptation", adapting.AdaptationView.as_view(), name="adaptation"),
    path(
        f"{CLUSTER}/adaptation/parameters/<str:name>",
        adapting.AdaptingParameterView.as_view(),
        name="adapting_parameter",
    ),
    path(f"{CLUSTER}/tree", queues.Tree.as_view(), name="tree"),
    path(f"{CLUSTER}/nodes", clusters.NodeList.as_view(), name="nodes"),
    path(f"{CLUSTER}/guardrails", clusters.GuardrailList.as_view(), name="guardrails"),
    *queues.Queues.addresses(),
    path(f"{CLUSTER}/quotas", quotas.QuotaList.as_view(), name="quotas"),
    path(f"{CLUSTER}/quotas/preview", quotas.QuotaPreview.as_view(), name="quota_preview"),
    path(f"{CLUSTER}/quota-changes", quotas.QuotaChangeList.as_view(), name="quota_changes"),
    path(
        f"{CLUSTER}/quota-changes/<int:pk>/revert",
        quotas.QuotaRevert.as_view(),
        name="quota_revert",
    ),
    *requests.Requests.addresses(),
    path(f"{REQUEST}/preview", requests.RequestPreview.as_view(), name="request_preview"),
    *loans.Loans.addresses(),
    path(f"{CLUSTER}/loans/<int:pk>/<slug:verb>", loans.LoanAct.as_view(), name="loan_act"),
    *loans.Offers.addresses(),
    *requests.RequestRules.addresses(),
    *workloads.Workloads.addresses(),
    path(
        f"{CLUSTER}/workload-actions",
        workload_acts.WorkloadActions.as_view(),
        name="workload_actions",
    ),
    *ledger.Cycles.addresses(),
    path(f"{CLUSTER}/decisions", ledger.DecisionList.as_view(), name="decisions"),
    path(f"{CLUSTER}/evictions", ledger.EvictionList.as_view(), name="evictions"),
    path(f"{CLUSTER}/alerts/past", alerts.AlertPast.as_view(), name="alert_past"),
    *alerts.Alerts.addresses(),
    path(f"{CLUSTER}/reports", reports.ReportList.as_view(), name="reports"),
    *(
        path(f"{CLUSTER}/reports/{name}", reports.view_of(report).as_view(), name=name)
        for name, report in REPORTS.items()
    ),
    *reports.SavedViews.addresses(),
    *studies.Studies.addresses(),
    *consolidations.Consolidations.addresses(),
    path(f"{CLUSTER}/forecasts/score", foresight.ForecastScore.as_view(), name="forecast_score"),
    path("schema", docs.Schema.as_view(), name="schema"),
    path("docs", docs.docs, name="docs"),
    re_path(r"^.*$", docs.NoSuchAddress.as_view(), name="nothing"),
]
