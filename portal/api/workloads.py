"""Workloads: list, read, submit, and what is done to one and asked of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404

from portal.accounts.models import Scope, User
from portal.api.errors import MissingRight
from portal.api.ledger import EVICTION_PARTIES
from portal.api.nouns import ClusterNoun, verb
from portal.api.submission import SubmitSerializer, SubmittedSerializer, at_fields, submit
from portal.api.workload_acts import (
    ChangeSerializer,
    ComparedSerializer,
    EventsSerializer,
    LogQuerySerializer,
    LogSerializer,
    PriorityChangeSerializer,
    asked_in,
)
from portal.api.workload_rows import SoonerSerializer, WorkloadDetailSerializer, WorkloadSerializer
from portal.display.filters import WorkloadFilter
from portal.plans.asking import starts_of
from portal.selectors.costs import STEPS
from portal.selectors.logs import reads_as
from portal.selectors.sooner import planned, sooner
from portal.teams import changing
from portal.teams.access import may_operate_workload, visible_workloads
from portal.teams.several import not_theirs
from scheduling.models import Eviction, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.starts.tell import NO_WORD
from scheduling.services.workloads import logs
from scheduling.services.workloads import submit as workloads

WAITS_S = 3.0
"""So long a call waits for a worker to say when work would start."""


def check_may_operate(user: User, workload: Workload) -> None:
    """Raises NotAllowed for a workload that ``user`` sees but may not touch."""
    if not may_operate_workload(user, workload):
        refused = not_theirs(workload)
        raise MissingRight(refused.sentence, refused.remedy)


class Workloads(ClusterNoun):
    """Workloads you may see: those of your queues, and your own wherever they are."""

    at, key, names = "workloads", "<str:uid>", ("workloads", "workload")
    one = "One workload with its history and, for those who may read it, its cost."
    takes, shows_new = SubmitSerializer, SubmittedSerializer
    filterset_class = WorkloadFilter
    lookup_field = "uid"
    write_scope = Scope.WORK

    def get_serializer_class(self) -> Any:
        shown = WorkloadDetailSerializer if self.action == "retrieve" else WorkloadSerializer
        return self.shows_new if self.action == "create" else shown

    def rows(self) -> QuerySet[Workload]:
        seen = visible_workloads(self.person).filter(cluster=self.cluster)
        rows = seen.select_related(
            "cluster", "queue", "priority_class", "gpu_class", "start_forecast", "prediction"
        ).prefetch_related(STEPS)
        if self.action != "retrieve":
            return rows
        evictions = Eviction.objects.select_related(*EVICTION_PARTIES)
        return rows.prefetch_related(
            "told_starts", "edits", Prefetch("evictions", queryset=evictions)
        )

    def make(self) -> Any:
        """Submit: the Job that a manifest or the named fields describe, created as you.

        The workload shows in lists as soon as the cluster reports it.
        """
        serializer = SubmitSerializer(data=self.request.data, context={"cluster": self.cluster})
        serializer.is_valid(raise_exception=True)
        return submit(self.person, self.cluster, serializer.validated_data)

    @verb("cancel", WorkloadSerializer, code=202)
    def cancel(self) -> Any:
        """Delete the Job; its pods stop after their grace. It can't be undone."""
        return self._act(workloads.cancel)

    @verb("hold", WorkloadSerializer, code=202)
    def hold(self) -> Any:
        """Keep a waiting workload from being started until it is released."""
        return self._act(workloads.hold)

    @verb("release", WorkloadSerializer, code=202)
    def release(self) -> Any:
        """Undo a hold; the workload keeps its submit time."""
        return self._act(workloads.release)

    @verb("priority", WorkloadSerializer, takes=PriorityChangeSerializer, code=202)
    def priority(self) -> Any:
        """Give a workload that waits or runs another priority class: one that your persona and that of its
        user allow."""

        def write(workload: Workload, *, user: str) -> None:
            # Read once the person may: whoever may not learns nothing of what could be sent.
            workloads.set_priority_class(workload, name=self.given["priority_class"], user=user)

        return self._act(write)

    @verb("change", WorkloadSerializer, takes=ChangeSerializer, code=202)
    def change_it(self) -> Any:
        """Change what a waiting workload asks for, in the cluster and in your name. It keeps its submit time.

        What its kind cannot change in place is refused with the way that is left."""

        def write(workload: Workload, *, user: str) -> None:
            with at_fields():
                changing.change(self.person, workload, asked_in(self.request))

        return self._act(write)

    @verb("change/preview", ComparedSerializer, takes=ChangeSerializer)
    def preview(self) -> Any:
        """What that does to its start, as it is and as it would be, by the next plan. It saves nothing."""
        workload = self._workload()
        check_may_operate(self.person, workload)
        wanted = asked_in(self.request)
        with at_fields():
            compared = changing.preview(self.person, workload, wanted)
        starts = starts_of(self.person, workload, wanted, compared, wait_s=WAITS_S)
        both = {"before": compared.before, "after": compared.after}
        rows = {n: {"one": one, "likely": starts.found.get(n, NO_WORD)} for n, one in both.items()}
        return {**rows, "is_open": starts.is_open}

    def _workload(self) -> Workload:
        return get_object_or_404(self.rows(), uid=self.kwargs["uid"])

    @verb("sooner", SoonerSerializer, by="get")
    def sooner(self) -> Any:
        """What would start it now: each change of one input within your reach, the cheapest first, as it was
        planned of late, else planned for this call. Empty where nothing would."""
        work = self._workload()
        if not work.is_waiting:
            raise ServiceError("not_waiting", f"{work.name} does not wait.", "See its state.")
        return {"changes": (planned(self.person, work) or sooner(self.person, work)).changes}

    @verb("log", LogSerializer, by="get", parameters=[LogQuerySerializer])
    def log(self) -> Any:
        """The last lines that one container wrote. The cluster decides whether you may read them."""
        work = self._workload()
        serializer = LogQuerySerializer(data=self.request.query_params)
        serializer.is_valid(raise_exception=True)
        return logs.log(work, user=reads_as(self.person, work), **serializer.validated_data)

    @verb("events", EventsSerializer, by="get")
    def events(self) -> Any:
        """What the cluster says happened to its object and pods, the newest first."""
        work = self._workload()
        return {"events": logs.events(work, user=reads_as(self.person, work))}

    def _act(self, act: Callable[..., None]) -> Workload:
        """It goes to the cluster now and shows once the cluster reports it."""
        workload = self._workload()
        check_may_operate(self.person, workload)
        act(workload, user=self.person.get_username())
        workload.refresh_from_db()
        return workload
