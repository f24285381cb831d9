"""What a person could change so that a waiting workload starts now."""

from __future__ import annotations

from typing import Any

from portal.accounts.models import User
from portal.teams.access import submittable_queues
from portal.teams.reading import Reading
from portal.teams.submission import usable_priority_classes
from scheduling.models import Workload
from scheduling.services.explain.why import what_would_start
from scheduling.services.words.told import answers

Json = dict[str, Any]


def sooner(person: User, work: Workload) -> list[Json]:
    """Each change of one input within the person's reach that would start it, planned on the live cluster.

    Raises ServiceError where the cluster does not answer.
    """
    queues = list(submittable_queues(person).filter(cluster=work.cluster))
    classes = {
        priority.name for queue in queues for priority in usable_priority_classes(person, queue)
    }
    found = what_would_start(
        work, queues=[queue.name for queue in queues], priority_classes=sorted(classes)
    )
    return answers(found, work, Reading(person))
