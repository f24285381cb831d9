"""A newcomer's way, timed: chart, first admin, cluster, first admitted Job, on a real control plane.

The API server gets what the chart renders, and simulated nodes run its pods as far as controllers look.
What those pods would do, the chart's commands do here, from this checkout, with the chart's settings and the
token of the pod's account where a pod has it, and with nothing else. That they run in the image:
`test_image.py`.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from tests import browser as chrome
from tests.deploy.charts import NAMESPACE, ROOT, Json, of_kind, pods, template
from tests.deploy.test_applied import Site
from tests.deploy.test_image import values
from tests.e2e import newcomer, venue
from tests.e2e.conftest import browser  # noqa: F401 - a fixture
from tests.parts import deployment
from tests.scheduling.control_plane import control_plane
from tests.scheduling.kube import JOBS, add_node, eventually, node
from workshop.testbed.control_plane.plane import ControlPlane
from workshop.testbed.parts import Postgres, free_port, postgres, redis_server

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.long,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="tokens are mounted where pods have them, as root"
    ),
    pytest.mark.skipif(chrome.find() is None and not chrome.is_required(), reason=chrome.LEFT_OUT),
]
COMES_S = 180.0
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
TEAM = "vision"
WAITED_FOR = "weir-web", "weir-engine"
"""The others come up meanwhile, at the lowest priority that there is."""
POD = (
    "set -e; mount -t tmpfs tmpfs /run; mkdir -p /run/secrets/kubernetes.io; "
    'cp -r "$0" /run/secrets/kubernetes.io/serviceaccount; exec "$@"'
)
"""Where a pod finds the token of its account; no other process sees it there."""
GUARDRAILS = "SELECT kind, namespace, name, standing FROM scheduling_guardrail"


class Pods:
    """The chart's pods as processes, each listening on a port of its own: they share an address here."""

    def __init__(self, site: Site, plane: ControlPlane, objects: list[Json], folder: Path) -> None:
        self.site, self.plane, self.folder = site, plane, folder
        self.templates = pods(objects)
        maps = of_kind(objects, "ConfigMap")["weir"]["data"]
        self.settings = maps | of_kind(objects, "Secret")["weir"]["stringData"]
        self.ports = {name: free_port() for name in self.templates}
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['weir-web']}"

    def run(self, pod: str, command: list[str] | None = None) -> str:
        done = subprocess.run(
            **self._words(pod, command), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, pod: str) -> None:
        with (self.folder / f"{pod}.log").open("wb") as log:
            words = self._words(pod)
            started = subprocess.Popen(**words, stdout=log, stderr=log, start_new_session=True)
        self.processes.append(started)

    def is_ready(self, pod: str) -> bool:
        """As the kubelet asks."""
        (container,) = self.templates[pod]["spec"]["containers"]
        path = container["readinessProbe"]["httpGet"]["path"]
        try:
            return requests.get(f"http://127.0.0.1:{self.ports[pod]}{path}", timeout=5).ok
        except requests.RequestException:
            return False

    def stop(self) -> None:
        for one in self.processes:
            os.killpg(one.pid, signal.SIGTERM)
        for one in self.processes:
            try:
                one.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(one.pid, signal.SIGKILL)

    def logs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(
            f"== {log.stem}\n{log.read_text(errors='replace')[-3000:]}" for log in logs
        )

    def _words(self, pod: str, command: list[str] | None = None) -> Json:
        spec = self.templates[pod]["spec"]
        (container,) = spec["containers"]
        port = str(self.ports[pod])
        swapped = {"8000": port, "/tmp/beat": str(self.folder / "beat")}  # noqa: S108 - it is replaced
        words = [swapped.get(word, word) for word in command or container["command"]]
        own = {one["name"]: port for one in container.get("env", [])}
        assert own.keys() <= {"WEIR_PROBE_PORT"}
        mounted = ["unshare", "--mount", "sh", "-c", POD, str(self._account(spec))]
        return {
            "args": [*mounted, *words],
            "cwd": ROOT,
            "env": {**self._outside(), **self.settings, **own},
        }

    def _outside(self) -> dict[str, str]:
        """What comes from the kubelet and the image."""
        api = urlsplit(self.plane.access.url)
        kept = {name: os.environ[name] for name in ("NUMBA_CACHE_DIR",) if name in os.environ}
        return kept | {
            "PATH": PATH,
            "KUBERNETES_SERVICE_HOST": str(api.hostname),
            "KUBERNETES_SERVICE_PORT": str(api.port),
        }

    def _account(self, spec: Json) -> Path:
        """A folder with what is mounted into the pod: nothing where its account's token is not."""
        folder = self.folder / spec["serviceAccountName"]
        folder.mkdir(exist_ok=True)
        if spec["automountServiceAccountToken"] and not (folder / "token").exists():
            token = self.site.kubectl("-n", NAMESPACE, "create", "token", folder.name)
            (folder / "token").write_text(token)
            (folder / "ca.crt").write_bytes(Path(self.plane.access.ca_file).read_bytes())
            (folder / "namespace").write_text(NAMESPACE)
        return folder


class Phases:
    """Seconds of each part of the way."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - began, 1)


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """A cluster of its own, on which nothing of Weir stands."""
    with control_plane("newcomer") as made:
        yield made


@pytest.fixture
def site(plane: ControlPlane) -> Iterator[Site]:
    """With a node that has GPUs, and the namespace of a team."""
    made = Site(plane)
    add_node(made.admin, node(venue.NODE, **venue.PRODUCT))
    made.kubectl("create", "namespace", TEAM)
    yield made
    made.admin.close()


def guarded(database: Postgres) -> bool:
    """Whether policies and rights of the team's namespace stand as they are to."""
    standings = {row[-1] for row in guardrails(database)}
    return standings == {"in_step"}


def guardrails(database: Postgres) -> list[tuple[str, ...]]:
    """(kind, namespace, name, standing)"""
    with psycopg.connect(database.dsn) as link:
        return link.execute(GUARDRAILS).fetchall()


@contextmanager
def tab(browser: Browser, url: str) -> Iterator[Page]:  # noqa: F811
    context = browser.new_context(base_url=url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(COMES_S * 1000)
    yield context.new_page()
    context.close()


def test_chart_leads_a_newcomer_to_the_first_admitted_job(
    site: Site,
    plane: ControlPlane,
    browser: Browser,  # noqa: F811
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    took = Phases()
    for command in deployment.build_commands():
        subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": PATH}, check=True)
    with postgres(free_port()) as database, redis_server() as broker:
        with took.phase("chart rendered and applied, its pods up"):
            objects = template({**values(database, broker), "size": "trial"})
            site.apply(objects)
            waited = ("rollout", "status", "deployment/weir-web", "--timeout", "10m")
            site.kubectl("-n", NAMESPACE, *waited)
        made = Pods(site, plane, objects, tmp_path)
        try:
            with took.phase("migrations"):
                made.run(next(name for name in made.templates if "migrate" in name))
            with took.phase("web server and engine ready"):
                for name in of_kind(objects, "Deployment"):
                    made.start(name)
                eventually(lambda: all(map(made.is_ready, WAITED_FOR)), COMES_S, made.logs)
            with tab(browser, made.url) as page:
                walk(page, made, took, database)
        finally:
            made.stop()
    (job,) = site.admin.get(JOBS.replace("default", TEAM))["items"]
    assert job["spec"]["suspend"] is False
    for name, seconds in took.seconds.items():
        record_property(name, seconds)
        print(f"{name}: {seconds} s")  # noqa: T201 - a figure


def walk(page: Page, made: Pods, took: Phases, database: Postgres) -> None:
    with took.phase("first admin"):
        told = made.run("weir-web", ["python", "manage.py", "first-admin"])
        (link,) = re.findall(r"http://\S+/set-up/first/\S+", told)
        newcomer.come_in(page, link)
    with took.phase("cluster, classes, queues, team"):
        newcomer.take_the_pods_account(page)
        newcomer.price_and_divide(page, TEAM)
        newcomer.make_team(page)
    with took.phase("enforced, its guardrails in step"):
        newcomer.go_to_enforce(page)
        # What the page says is typed as it stands there.
        verb, *words = shlex.split(newcomer.line_to_type(page))
        assert (verb, words[:2]) == ("kubectl", ["label", "namespace"])
        made.site.kubectl(*words)
        newcomer.check_again(page)
        newcomer.enforce(page)
        eventually(
            lambda: guarded(database), COMES_S, lambda: f"{guardrails(database)}\n{made.logs()}"
        )
    with took.phase("first Job submitted and admitted"):
        newcomer.submit_one(page)
        begun = page.get_by_text("Running").or_(page.get_by_text("Admitted")).first
        expect(begun).to_be_visible(timeout=COMES_S * 1000)
