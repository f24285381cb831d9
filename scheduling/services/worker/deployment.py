"""Every process of an installation and the command that runs it.

The image, docker/compose.yaml, the chart in deploy/helm/weir and the page of the engine follow it; tests hold
them to it. It needs nothing of Django.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.services.worker.names import CLUSTERS, GENERAL, LOWEST, STUDIES

CELERY = ("celery", "-A", "portal.config")
GIVING_WAY = ("nice", "-n", str(LOWEST))
WORKER = (*CELERY, "worker")
MIGRATE = ("python", "manage.py", "migrate", "--noinput")


@dataclass(frozen=True, slots=True)
class DeployedProcess:
    """A service of compose and a Deployment of the chart; ``role`` is what its heart says it is."""

    name: str
    role: str
    command: tuple[str, ...]
    account: str = ""
    """The service account on Kubernetes; empty where it asks nothing of an API server."""
    many: bool = False
    """Whether more of them do more. Of the engine and of beat one is enough at any time."""


DEPLOYED = (
    DeployedProcess(
        "web", "web",
        (
            # Whom to believe about addresses is for the portal to say. How many processes: WEB_CONCURRENCY.
            # An idle connection is the proxy's to end, commonly after 60 s: where the portal ends it, a
            # request that is on its way is lost.
            "uvicorn", "portal.config.asgi:application", "--host", "0.0.0.0", "--port", "8000",  # noqa: S104
            "--lifespan", "on", "--no-server-header", "--no-proxy-headers",
            "--timeout-keep-alive", "75", "--timeout-graceful-shutdown", "5",
        ),
        account="weir-portal", many=True,
    ),
    DeployedProcess(
        "engine", "engine",
        (*WORKER, "--pool", "threads", "--concurrency", "4", "--queues", CLUSTERS),
        account="weir-engine",
    ),
    DeployedProcess(
        "worker", "worker",
        (*GIVING_WAY, *WORKER, "--queues", GENERAL, "--concurrency", "1"), many=True,
    ),
    DeployedProcess(
        "studies", "study",
        (*GIVING_WAY, *WORKER, "--queues", STUDIES, "--concurrency", "2"), many=True,
    ),
    DeployedProcess("beat", "beat", (*CELERY, "beat", "--schedule", "/tmp/beat")),  # noqa: S108 - of its container
)  # fmt: skip
