"""The chart for eight organisations: objects of their kinds, pods without rights, flows that are named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.conf import settings

from scheduling.services.clusters.checkup import OLDEST, SUPPORTED
from scheduling.services.worker.deployment import DEPLOYED, MIGRATE
from tests.deploy.charts import (
    CHART,
    EXTERNAL,
    PROXIED,
    ROOT,
    SETS,
    Json,
    Values,
    helm,
    of_kind,
    pods,
    refusal,
    rendered,
    template,
)

pytestmark = pytest.mark.deploy
OWN_KINDS = ("ServiceMonitor", "PrometheusRule", "HTTPRoute")
"""Of operators, of which no server here knows; `test_kinds.py` holds them to their types."""
VERSIONS = tuple(f"{major}.{minor}" for major, minor in (OLDEST, *SUPPORTED))
"""The oldest that the chart takes, and both ends of the range that is supported."""
every_set = pytest.mark.parametrize("name", SETS)


@every_set
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_fits_the_schema_of_its_kind(name: str, version: str) -> None:
    for found in rendered(name):
        if found["kind"] not in OWN_KINDS:
            kubernetes_validate.validate(found, version, strict=True)


@every_set
def test_no_object_is_there_twice(name: str) -> None:
    names = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in rendered(name)
    ]

    assert sorted(map(str, names)) == sorted(map(str, set(names)))


@every_set
def test_every_process_of_the_table_runs_and_nothing_else(name: str) -> None:
    deployments = of_kind(rendered(name), "Deployment")

    assert {
        found["spec"]["template"]["spec"]["containers"][0]["name"]: tuple(
            found["spec"]["template"]["spec"]["containers"][0]["command"]
        )
        for found in deployments.values()
    } == {one.name: one.command for one in DEPLOYED}
    (job,) = of_kind(rendered(name), "Job").values()
    assert tuple(job["spec"]["template"]["spec"]["containers"][0]["command"]) == MIGRATE


@every_set
def test_every_pod_is_nobody_that_matters_and_writes_nowhere(name: str) -> None:
    for pod in pods(rendered(name)).values():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            bounds = container["securityContext"]
            assert bounds["readOnlyRootFilesystem"] is True
            assert bounds["allowPrivilegeEscalation"] is False
            assert bounds["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            assert "cpu" in container["resources"]["requests"]


def accounts(objects: list[Json]) -> dict[str, tuple[str, bool]]:
    return {
        name: (pod["spec"]["serviceAccountName"], bool(pod["spec"]["automountServiceAccountToken"]))
        for name, pod in pods(objects).items()
    }


@every_set
def test_engine_and_portal_have_a_token_each_and_nobody_else_has_one(name: str) -> None:
    found = accounts(rendered(name))

    engines = {found.pop(one) for one in list(found) if one.startswith("weir-engine")}
    assert engines == {("weir-engine", True)}
    assert found.pop("weir-web") == ("weir-portal", True)
    assert set(found.values()) == {("weir-worker", False)}


def rules(objects: list[Json], role: str) -> list[Any]:
    return [one["rules"] for one in objects if one["metadata"]["name"] == role and "rules" in one]


@pytest.mark.parametrize("file", ["observe", "enforce", "portal"])
def test_roles_are_those_of_clusters_apart(file: str) -> None:
    """Weir's own manifests for clusters that it does not run in; tests of theirs hold them to the code."""
    path = settings.BASE_DIR / f"docker/kubernetes/{file}.yaml"
    apart = [one for one in yaml.safe_load_all(path.read_text()) if "rules" in one]

    assert apart
    for role in apart:
        assert rules(rendered("external"), role["metadata"]["name"]) == [role["rules"]]


def test_observer_can_write_nothing() -> None:
    objects = rendered("observer")
    verbs = {v for one in objects for rule in one.get("rules", ()) for v in rule["verbs"]}

    assert verbs == {"get", "list", "watch"}
    assert all("enforce" not in name for name in of_kind(objects, "ClusterRoleBinding"))


def test_portal_names_no_group_but_that_of_its_people() -> None:
    (found,) = rules(rendered("air-gapped"), "weir-portal")
    (groups,) = (rule for rule in found if rule["resources"] == ["groups"])

    assert groups["resourceNames"] == ["weir:people"]


def test_accounts_of_bindings_are_those_of_the_namespace() -> None:
    objects = template(EXTERNAL, namespace="gpus")
    subjects = [s for one in objects for s in one.get("subjects", ())]

    assert {s["namespace"] for s in subjects} == {"gpus"}
    assert "weir-system" in of_kind(objects, "Namespace"), "the lease is there on every cluster"
    role = of_kind(objects, "Role")["weir-lease"]
    assert role["metadata"]["namespace"] == "weir-system"


def test_policy_that_keeps_the_engine_knows_it_by_the_account_of_the_namespace() -> None:
    kept = of_kind(template(EXTERNAL, namespace="gpus"), "ValidatingAdmissionPolicy")["weir-engine"]
    (condition,) = kept["spec"]["matchConditions"]

    assert "'system:serviceaccount:gpus:weir-engine'" in condition["expression"]


def images(objects: list[Json]) -> set[str]:
    return {
        container["image"]
        for pod in pods(objects).values()
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    }


def test_one_value_moves_every_image_to_a_mirror() -> None:
    found = images(rendered("air-gapped"))

    assert len(found) == 3
    assert all(image.startswith("mirror.inside/weir/") for image in found)
    assert any(image.endswith("weir@sha256:" + "a" * 64) for image in found)


@every_set
def test_budget_and_spread_are_of_the_pods_that_there_are(name: str) -> None:
    objects = rendered(name)
    deployments = of_kind(objects, "Deployment")
    budgets = of_kind(objects, "PodDisruptionBudget")

    assert set(budgets) == (set(deployments) if name != "observer" else set())
    for key, found in deployments.items():
        labels = found["spec"]["template"]["metadata"]["labels"]
        assert found["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert ("affinity" in found["spec"]["template"]["spec"]) == (found["spec"]["replicas"] > 1)
        if key in budgets:
            assert budgets[key]["spec"]["selector"] == found["spec"]["selector"]
    assert deployments["weir-web"]["spec"]["replicas"] >= 2
    assert deployments["weir-beat"]["spec"]["replicas"] == 1


@every_set
def test_every_process_is_probed_where_it_listens(name: str) -> None:
    for found in of_kind(rendered(name), "Deployment").values():
        (container,) = found["spec"]["template"]["spec"]["containers"]
        (port,) = container["ports"]
        environment = {e["name"]: e["value"] for e in container.get("env", ())}
        assert environment.get("WEIR_PROBE_PORT", "8000") == str(port["containerPort"])
        for probe, path in (
            ("startup", "/livez"),
            ("liveness", "/livez"),
            ("readiness", "/readyz"),
        ):
            asked = container[f"{probe}Probe"]["httpGet"]
            assert asked == {"path": path, "port": port["name"]}


def matches(selector: Json, labels: Json) -> bool:
    of = selector.get("matchExpressions", ())
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(one["key"]) in one["values"] for one in of
    )


def flows(objects: list[Json], way: str) -> dict[str, set[int]]:
    """Component -> ports that policies let through, in or out."""
    found: dict[str, set[int]] = {}
    for pod in pods(objects).values():
        labels = pod["metadata"]["labels"]
        policies = [
            one["spec"]
            for one in of_kind(objects, "NetworkPolicy").values()
            if matches(one["spec"]["podSelector"], labels)
        ]
        assert any(set(p["policyTypes"]) == {"Ingress", "Egress"} for p in policies)
        found[labels["app.kubernetes.io/component"]] = {
            port["port"] for p in policies for rule in p.get(way, ()) for port in rule["ports"]
        }
    return found


def test_policies_name_every_flow() -> None:
    out = flows(rendered("trial"), "egress")
    into = flows(rendered("trial"), "ingress")
    always, store = {53}, {53, 5432, 6379}
    mail, directory = {25, 465, 587}, {389, 636}

    assert out == {
        "web": store | {443, 6443, 9090} | directory,
        "engine": store | {443, 6443, 9090} | mail | directory,
        "worker": store | {443} | mail | directory,
        "studies": store,
        "beat": store,
        "migrate": store,
        "postgres": always,
        "redis": always,
    }
    assert into == {
        "web": {8000},
        **{name: {9100} for name in ("engine", "worker", "studies", "beat")},
        "migrate": set(),
        "postgres": {5432},
        "redis": {6379},
    }


def test_external_stores_are_reached_where_they_are() -> None:
    policy = of_kind(rendered("observer"), "NetworkPolicy")["weir-to-database-and-broker"]

    assert [(rule["to"], rule["ports"][0]["port"]) for rule in policy["spec"]["egress"]] == [
        ([{"ipBlock": {"cidr": "10.1.0.0/24"}}], 5432),
        ([{"ipBlock": {"cidr": "10.2.0.0/24"}}], 6379),
    ]


def test_clusters_are_parted_among_engines_that_are_otherwise_alike() -> None:
    objects = rendered("large")
    engines = {n: d for n, d in of_kind(objects, "Deployment").items() if "engine" in n}
    out, into = flows(objects, "egress"), flows(objects, "ingress")

    parts = {
        name: [one["value"] for one in env if one["name"] == "WEIR_ENGINE_CLUSTERS"]
        for name, found in engines.items()
        for env in [found["spec"]["template"]["spec"]["containers"][0]["env"]]
    }
    assert parts == {"weir-engine": ["fra1,ams1"], "weir-engine-2": ["sin1"]}
    assert [found["spec"]["replicas"] for found in engines.values()] == [2, 2]
    assert out["engine"] == out["engine-2"] > {5432, 6379, 6443}
    assert into["engine"] == into["engine-2"] == {9100}
    selected = [found["spec"]["selector"]["matchLabels"] for found in engines.values()]
    assert selected[0] != selected[1], "no pod is of two Deployments"


def test_names_are_asked_for_where_the_cluster_answers() -> None:
    """OpenShift answers in a namespace and on a port of its own, a cache on each node at an address."""
    there = [{"ipBlock": {"cidr": "169.254.20.10/32"}}]
    values = {"dns": there, "ports": {"dns": [53, 5353]}}
    policies = of_kind(template({**EXTERNAL, "networkPolicies": values}), "NetworkPolicy")
    (rule,) = policies["weir-names"]["spec"]["egress"]

    assert rule["to"] == there
    assert {(one["protocol"], one["port"]) for one in rule["ports"]} == {
        (protocol, port) for protocol in ("UDP", "TCP") for port in (53, 5353)
    }


@every_set
def test_every_process_trusts_the_certificates_that_are_given_and_else_the_images(
    name: str,
) -> None:
    given = SETS[name].get("trustedCertificates")
    for found in of_kind(rendered(name), "Deployment") | of_kind(rendered(name), "Job"):
        spec = pods(rendered(name))[found]["spec"]
        (container,) = spec["containers"]
        told = {one["name"]: one["value"] for one in container.get("env", ())}
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in spec["volumes"]}
        trusted = [told.get(word) for word in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
        if given is None:
            assert trusted == [None, None]
            assert "trusted" not in volumes
            continue
        (item,) = volumes["trusted"]["configMap"]["items"]
        assert (volumes["trusted"]["configMap"]["name"], item["key"]) == ("our-bundle", "ca.pem")
        assert trusted == [f"{mounts['trusted']}/{item['path']}"] * 2


def test_tls_ends_at_the_ingress_and_the_portal_knows() -> None:
    objects = rendered("ingress")
    ingress = of_kind(objects, "Ingress")["weir"]
    settings_of = of_kind(objects, "ConfigMap")["weir"]["data"]

    assert ingress["spec"]["tls"] == [{"hosts": ["gpus.example.org"], "secretName": "weir-tls"}]
    assert ingress["metadata"]["annotations"]["cert-manager.io/cluster-issuer"] == "letsencrypt"
    assert settings_of["WEIR_TLS"] == "true"
    assert settings_of["WEIR_TRUSTED_PROXIES"] == "10.0.0.0/8"
    assert settings_of["WEIR_CSRF_TRUSTED_ORIGINS"] == "https://gpus.example.org"


def test_secret_with_a_certificate_of_ones_own_needs_no_issuer() -> None:
    tls = {"secretName": "our-certificate"}
    values = {**PROXIED, "ingress": {"enabled": True, "tls": tls}}
    ingress = of_kind(template(values), "Ingress")["weir"]

    assert ingress["spec"]["tls"] == [{"hosts": ["gpus.example.org"], **tls}]
    assert not [name for name in ingress["metadata"]["annotations"] if "cert-manager" in name]


def test_settings_of_a_provider_pass_through_with_the_lines_of_its_certificate() -> None:
    given = {
        "WEIR_SAML_ENTITY_ID": "https://sso.example.org/saml",
        "WEIR_SAML_ADDRESS": "https://sso.example.org/saml/sign-in",
        "WEIR_SAML_CERTIFICATE": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        "WEIR_SAML_GROUPS_ATTRIBUTE": "http://schemas.example.org/groups",
    }
    told = of_kind(template(EXTERNAL | {"config": {"values": given}}), "ConfigMap")["weir"]["data"]

    assert given.items() <= told.items()


def test_streams_are_settings_and_their_ports_are_open_to_the_worker() -> None:
    objects = rendered("ingress")
    told = of_kind(objects, "ConfigMap")["weir"]["data"]
    egress = of_kind(objects, "NetworkPolicy")["weir-worker"]["spec"]["egress"]
    opened = {(p["protocol"], p["port"]) for rule in egress for p in rule["ports"]}

    assert told["WEIR_STREAM_AUDIT"] == "syslog+udp://log.example.org"
    assert told["WEIR_STREAM_USAGE"] == "https://in.example.org/x"
    assert not any(
        name.startswith("WEIR_STREAM")
        for name in of_kind(rendered("gateway"), "ConfigMap")["weir"]["data"]
    )
    assert {("UDP", 514), ("TCP", 6514), ("TCP", 443)} <= opened


def test_traces_have_an_endpoint_and_their_port_is_open_where_they_are_wanted() -> None:
    wanted, unwanted = rendered("ingress"), rendered("gateway")
    told = of_kind(wanted, "ConfigMap")["weir"]["data"]
    egress = of_kind(wanted, "NetworkPolicy")["weir-traces"]["spec"]["egress"]

    assert told["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector.monitoring:4318"
    assert egress == [{"ports": [{"protocol": "TCP", "port": 4318}]}]
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in of_kind(unwanted, "ConfigMap")["weir"]["data"]
    assert "weir-traces" not in of_kind(unwanted, "NetworkPolicy")


def test_gateway_leads_to_the_service() -> None:
    objects = rendered("gateway")
    route = of_kind(objects, "HTTPRoute")["weir"]["spec"]

    assert route["parentRefs"] == [{"name": "edge", "namespace": "gateways"}]
    assert route["hostnames"] == ["gpus.example.org"]
    assert route["rules"] == [
        {"backendRefs": [{"name": "weir", "port": 80}], "timeouts": {"request": "0s"}}
    ]
    assert of_kind(objects, "Service")["weir"]["spec"]["ports"][0]["port"] == 80


@every_set
def test_every_setting_that_the_chart_gives_is_documented(name: str) -> None:
    told = (ROOT / "docs/operations/install.md").read_text()
    objects = rendered(name)
    given = {
        key
        for kind, field in (("ConfigMap", "data"), ("Secret", "stringData"))
        for found in of_kind(objects, kind).values()
        if found["metadata"]["name"] == "weir"
        for key in found[field]
    }

    assert {key for key in given if f"`{key}`" not in told} == {
        key for key in given if key in ("POSTGRES_PASSWORD", "REDIS_PASSWORD")
    }


def test_trial_keeps_one_password_of_each_in_all_places() -> None:
    (secret,) = of_kind(rendered("trial"), "Secret").values()
    held = secret["stringData"]

    assert held["DATABASE_URL"] == (
        f"postgres://weir:{held['POSTGRES_PASSWORD']}@weir-postgres:5432/weir"
    )
    assert held["WEIR_BROKER_URL"] == f"redis://:{held['REDIS_PASSWORD']}@weir-redis:6379/0"
    assert len(held["WEIR_SECRET_KEY"]) >= 50
    again = of_kind(template(SETS["trial"]), "Secret")["weir"]["stringData"]
    assert again["WEIR_SECRET_KEY"] != held["WEIR_SECRET_KEY"]


@every_set
def test_secret_and_settings_that_pods_read_are_made_or_named(name: str) -> None:
    objects = rendered(name)
    values = SETS[name]
    made = {("secretRef", key) for key in of_kind(objects, "Secret")}
    made |= {("configMapRef", key) for key in of_kind(objects, "ConfigMap")}
    made |= {
        (ref, values[key]["existing"])
        for ref, key in (("secretRef", "secret"), ("configMapRef", "config"))
        if values.get(key, {}).get("existing")
    }
    for found in of_kind(objects, "Deployment").values():
        for source in found["spec"]["template"]["spec"]["containers"][0]["envFrom"]:
            ((kind, ref),) = source.items()
            assert (kind, ref["name"]) in made


def test_upgrade_migrates_before_the_new_processes_start() -> None:
    at_install, at_upgrade = (
        of_kind(objects, "Job").popitem()[1]["metadata"]
        for objects in (template(EXTERNAL), template(EXTERNAL, "--is-upgrade"))
    )

    assert "annotations" not in at_install
    assert at_upgrade["annotations"]["helm.sh/hook"] == "pre-upgrade"


def test_job_of_another_image_has_another_name() -> None:
    (one,), (other,) = (
        of_kind(template({**EXTERNAL, "image": {"tag": tag}}), "Job") for tag in ("1", "2")
    )

    assert one != other


def test_monitors_find_services_and_ports_that_there_are() -> None:
    objects = rendered("ingress")
    services = of_kind(objects, "Service")
    for monitor in of_kind(objects, "ServiceMonitor").values():
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        selected = monitor["spec"]["selector"]
        (found,) = (
            one for one in services.values() if matches(selected, one["metadata"]["labels"])
        )
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in found["spec"]["ports"]}
        assert endpoint["authorization"]["credentials"]["key"] == "WEIR_METRICS_TOKEN"


def test_rules_and_board_are_those_of_the_files() -> None:
    objects = rendered("ingress")
    rule = of_kind(objects, "PrometheusRule")["weir"]["spec"]
    board = of_kind(objects, "ConfigMap")["weir-dashboards"]["data"]["weir.json"]

    assert rule == yaml.safe_load((CHART / "files/rules.yaml").read_text())
    assert json.loads(board) == json.loads((ROOT / "docker/grafana/weir.json").read_text())


REFUSED = {
    "no registry": ({"secret": {"existing": "s"}}, "registry: name the registry"),
    "no secret": ({"registry": "r"}, "secret.existing: name a Secret"),
    "secret twice": (
        {**EXTERNAL, "secret": {"existing": "s", "values": {"A": "b"}}},
        "existing or values, not both",
    ),
    "secret without the database": (
        {"registry": "r", "secret": {"values": {"WEIR_SECRET_KEY": "k"}}},
        "secret.values.DATABASE_URL: is missing",
    ),
    "secret among settings": (
        {**EXTERNAL, "config": {"values": {"WEIR_SECRET_KEY": "k"}}},
        "invalid propertyName 'WEIR_SECRET_KEY'",
    ),
    "ingress without proxies": (
        {**EXTERNAL, "site": "a.org", "ingress": {"enabled": True}},
        "trustedProxies: name the network",
    ),
    "ingress without site": (
        {**EXTERNAL, "trustedProxies": ["10.0.0.0/8"], "ingress": {"enabled": True}},
        "site: name the host",
    ),
    "ingress and gateway": (
        {**PROXIED, "ingress": {"enabled": True}, "gateway": {"enabled": True}},
        "enable one of them",
    ),
    "a word that there is not": ({**EXTERNAL, "replicas": 3}, "additional properties 'replicas'"),
    "no web server": ({**EXTERNAL, "web": {"replicas": 0}}, "web/replicas"),
    "an engine of no cluster": ({**EXTERNAL, "engine": {"clusters": [[]]}}, "engine/clusters/0"),
    "two beats": ({**EXTERNAL, "beat": {"replicas": 2}}, "additional properties 'replicas'"),
    "unknown size": ({**EXTERNAL, "size": "huge"}, "size"),
    "no target": ({**EXTERNAL, "streams": {"audit": "syslog://h"}}, "streams/audit"),
    "user in a target": ({**EXTERNAL, "streams": {"usage": "https://u:p@h/"}}, "streams/usage"),
    "secret of streams among settings": (
        {**EXTERNAL, "config": {"values": {"WEIR_STREAM_AUTHORIZATION": "Bearer x"}}},
        "invalid propertyName 'WEIR_STREAM_AUTHORIZATION'",
    ),
    "no network": ({**EXTERNAL, "trustedProxies": ["the proxy"]}, "trustedProxies"),
}


SECRET = re.compile(
    r"KEY|PASSWORD|TOKEN$|CLIENT_SECRET|AUTHORIZATION|HEADERS|^DATABASE_URL$|_(BROKER|CACHE|REPLICA)_URL$"
)
"""Settings whose values are secret, or hold a password."""


def test_no_secret_may_stand_among_settings() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    names = schema["properties"]["config"]["properties"]["values"]["propertyNames"]
    manual = "".join(
        (ROOT / f"docs/operations/{page}.md").read_text() for page in ("install", "run")
    )
    told = set(re.findall(r"`((?:WEIR|OTEL|DATABASE)_[A-Z_]+)`", manual))
    secret = {name for name in told if SECRET.search(name)} - {"WEIR_LDAP_KEY"}

    assert len(secret) > 10
    assert secret - set(names["not"]["enum"]) == set()


def closed(schema: Json, path: str = "") -> list[str]:
    """Objects below it that name their fields and take others all the same."""
    own = schema.get("properties", {})
    open_ = [path] if own and schema.get("additionalProperties") is not False else []
    return open_ + [found for name, part in own.items() for found in closed(part, f"{path}/{name}")]


def test_no_word_that_is_not_a_value_is_taken_anywhere() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert closed(schema) == []
    assert named(schema) - {"/global"} == set(paths(values))


def named(schema: Json, path: str = "") -> set[str]:
    found = {f"{path}/{name}" for name in schema.get("properties", {})}
    return found.union(*(named(p, f"{path}/{n}") for n, p in schema.get("properties", {}).items()))


def paths(values: Values, path: str = "") -> Iterator[str]:
    """Every value of values.yaml; what is empty there, or a list, is one."""
    for name, value in values.items():
        yield f"{path}/{name}"
        if isinstance(value, dict) and name not in FREE:
            yield from paths(value, f"{path}/{name}")


FREE = ("resources", "dashboardLabels")
"""Maps of which the names are the organisation's or Kubernetes'."""


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_cannot_work_are_refused_by_name(name: str) -> None:
    values, told = REFUSED[name]

    assert told in refusal(values)


def test_chart_is_sound_and_packs(tmp_path: Any) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(SETS["ingress"]))
    linted = helm("lint", "--strict", str(CHART), "--values", str(tmp_path / "values.yaml"))
    packed = helm("package", str(CHART), "--destination", str(tmp_path))

    assert linted.returncode == 0, linted.stdout
    assert packed.returncode == 0, packed.stderr
    (chart,) = tmp_path.glob("weir-*.tgz")
    again = helm(
        "template", "weir", str(chart), "--namespace", "weir-system", "--values",
        str(tmp_path / "values.yaml"),
    )  # fmt: skip
    assert again.stderr == "", "what is packed holds its files, and no links to them"
    assert len([one for one in yaml.safe_load_all(again.stdout) if one]) == len(rendered("ingress"))
