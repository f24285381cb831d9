"""The deployment files hold together: what the schema of compose cannot see, and no engine is here to say."""

import re
from collections.abc import Iterator

import pytest
from django.conf import settings

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
    told = (settings.BASE_DIR / "docs" / "operations.md").read_text()
    assert {name for name in deployment.environment() if f"`{name}`" not in told} == set()


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
    ]
    assert set(deployment.services()) == {"migrate", "web", "worker", "studies", "engine", "beat"}
