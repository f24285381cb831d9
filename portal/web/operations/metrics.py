"""Where a cluster's GPUs are measured, and how that goes."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from portal.boundary.forms import WeirForm
from portal.display.format import counted
from portal.teams.access import is_admin
from portal.web.frame.forms import form_page
from portal.web.frame.requests import PersonRequest, form_view
from portal.web.operations.mode import operated
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.gpu_metrics import set_source


class SourceForm(WeirForm):
    url = forms.CharField(
        required=False, max_length=200, label="Address of the Prometheus server",
        help_text="Its root, such as http://prometheus.monitoring:9090. Empty: nobody measures.",
    )  # fmt: skip
    token = forms.CharField(
        required=False, max_length=5000, label="Bearer token",
        help_text="Where it wants one. It is kept in a file and shown nowhere; empty keeps the known one.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )  # fmt: skip
    activity = forms.CharField(
        required=False, max_length=200, label="Series of SM activity",
        help_text="A recording rule's, for instance. Empty: the DCGM exporter's own. A name that ends in "
        "_percent is of a hundred.",
    )  # fmt: skip


@form_view
def metrics(request: PersonRequest, cluster: str) -> HttpResponse:
    """Operators see how measuring goes; whoever administers says where."""
    found = operated(request, cluster)
    known = {"url": found.metrics_url, "activity": found.metrics_activity}
    form = SourceForm(request.POST if request.method == "POST" else None, initial=known)
    if request.method == "POST":
        if not is_admin(request.user):
            raise Http404
        if form.is_valid() and _saved(request, found, form):
            return redirect("web:metrics", found.name)
    context = {"cluster": found, "may_set": is_admin(request.user)}
    return form_page(request, "web/operations/metrics.html", form, context)


def _saved(request: PersonRequest, cluster: Cluster, form: SourceForm) -> bool:
    typed = {name: value.strip() for name, value in form.cleaned_data.items()}
    try:
        seen = set_source(cluster=cluster, author=request.user, **typed)
    except ServiceError as refused:
        form.refuse(refused)
        return False
    said = "Nobody measures from now on."
    if seen is not None:
        said = f"It tells of {counted(seen.gpus, 'GPU')} of {counted(seen.pods, 'pod')}."
    messages.success(request, said)
    return True
