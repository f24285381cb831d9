"""The deployment files hold together: what the schema of compose cannot see, and no engine is here to say."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.conf import settings

from portal.config.serving import server_config
from scheduling.services.worker.deployment import DEPLOYED
from tests.parts import deployment
from tests.parts.test_whole import FAULTS

COMPOSE = deployment.compose()
SERVICES = COMPOSE["services"]
TEXT = deployment.COMPOSE.read_text()


def named(kind: str) -> Iterator[tuple[str, str]]:
    """(service, name) of every network or volume that a service names."""
    for service, said in SERVICES.items():
        for entry in said.get(kind, []):
            name = entry.split(":")[0] if isinstance(entry, str) else entry
            if not name.startswith("."):
                yield service, name


def test_what_a_service_waits_for_is_a_service():
    for name, said in SERVICES.items():
        assert set(said.get("depends_on", ())) <= SERVICES.keys(), name


def test_service_waits_for_health_only_of_what_says_how_it_is():
    for said in SERVICES.values():
        waits = said.get("depends_on", {})
        for other, how in waits.items() if isinstance(waits, dict) else ():
            assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]


@pytest.mark.parametrize("kind", ["networks", "volumes"])
def test_networks_and_volumes_are_declared_and_used(kind):
    used = {name for _, name in named(kind)} - {"default"}
    assert used == COMPOSE[kind].keys()


def test_no_secret_has_a_default():
    for name in re.findall(r"\$\{(\w*(?:SECRET|PASSWORD)\w*)(?!\w)", TEXT):
        assert f"${{{name}:?" in TEXT
        assert f"${{{name}:-" not in TEXT


def test_every_setting_that_compose_gives_is_documented():
    told = (settings.BASE_DIR / "docs/operations/install.md").read_text()
    assert {name for name in deployment.environment() if f"`{name}`" not in told} == set()


def test_every_process_says_how_it_is_and_has_a_bound_of_memory():
    for one in DEPLOYED:
        said = SERVICES[one.name]
        path = "8000/readyz" if one.name == "web" else "9100/livez"
        assert f"127.0.0.1:{path}" in said["healthcheck"]["test"][-1]
        assert said["pids_limit"]
        assert said["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert [name for name, said in SERVICES.items() if not said.get("mem_limit")] == []


def test_command_of_a_health_check_is_python_and_fails_where_nothing_answers():
    for one in DEPLOYED:
        _, program, *words = SERVICES[one.name]["healthcheck"]["test"]
        words[-1] = words[-1].replace(":9100", ":9").replace(":8000", ":9")
        done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
        assert (program, done.returncode) == ("python", 1)
        assert b"refused" in done.stderr


def test_redis_lets_nobody_in_without_its_password_and_keeps_what_waits():
    redis = SERVICES["redis"]
    assert '--requirepass "$$REDIS_PASSWORD"' in redis["command"][-1]
    assert "--appendonly yes" in redis["command"][-1]
    assert ":${REDIS_PASSWORD:?" in deployment.environment()["WEIR_BROKER_URL"]
    assert redis["volumes"] == ["redis:/data"]


def test_only_the_proxy_has_open_ports():
    assert [name for name, said in SERVICES.items() if "ports" in said] == ["proxy"]


def test_each_process_of_weir_is_killed_in_the_tests_of_the_whole():
    lasting = {name for name, service in deployment.services().items() if service.restart != "no"}
    assert {name for name in lasting if f"{name}-killed" in FAULTS} == lasting


def test_every_command_of_the_image_and_of_compose_is_read():
    """What the tests of the whole run is all there is: a new RUN line or service shows up here."""
    assert deployment.image_command()[0] == "uvicorn"
    assert [command[1:3] for command in deployment.build_commands()] == [
        ["manage.py", "collectstatic"],
        ["-m", "scheduling.engine"],
        ["-m", "scheduling.simulation"],
    ]
    assert set(deployment.services()) == {"migrate", "web", "worker", "studies", "engine", "beat"}


def test_idle_connection_is_for_the_proxy_to_end():
    """Nginx, Envoy and balancers of clouds keep one for 60 s."""
    words = dict(pairwise(next(one for one in DEPLOYED if one.name == "web").command))
    assert int(words["--timeout-keep-alive"]) == server_config().timeout_keep_alive > 60
