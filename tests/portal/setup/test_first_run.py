"""From an empty installation to enforce, over an API server, on pages alone."""

import re
from decimal import Decimal
from html import unescape

import pytest

from portal.accounts.models import User
from portal.audit.models import AuditEntry
from portal.setup import inviting
from portal.web.operations.mode import effects
from portal.web.setup.forms import ClassForm, proposed_rate
from scheduling.cluster.connection.client import Client
from scheduling.models import (
    Cluster,
    ClusterMode,
    Credential,
    GpuClass,
    Node,
    PriorityClass,
    Queue,
    Quota,
)
from scheduling.models.credentials import read
from scheduling.services.clusters import checkup
from scheduling.services.queues.sharing import SAID
from workshop.testbed.server import EmbeddedServer

pytestmark = pytest.mark.django_db
LOOKED = {"taking": ["vision", "speech", "web"]}
"""Namespaces in which pods run: the person says that they looked."""
LABEL = "nvidia.com/gpu.product"


@pytest.fixture(scope="module")
def server():
    """Two nodes; namespaces of one team that hold GPUs, and a pod that belongs to nothing."""
    with EmbeddedServer(port=0, controllers=False) as running:
        client = Client.connect(Cluster(name="x", api_url=running.url))
        for name, ready in (("n1", "True"), ("n2", "False")):
            client.create("/api/v1/nodes", node(name, ready))
        for name, labels in (
            ("vision", {"team": "research"}), ("speech", {"team": "research"}), ("web", {}),
        ):  # fmt: skip
            meta = {"name": name, "labels": labels}
            client.create(
                "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
            )
        for i, (namespace, owned) in enumerate(
            (("vision", True), ("speech", True), ("web", False))
        ):
            client.create(f"/api/v1/namespaces/{namespace}/pods", pod(f"p{i}", owned))
        client.close()
        yield running


def node(name, ready):
    amounts = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "NVIDIA-L4", "kubernetes.io/hostname": name}},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def pod(name, owned):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": f"u-{name}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **({"ownerReferences": [owner]} if owned else {})},
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
            ],
        },
        "status": {"phase": "Running"},
    }


def kubeconfig(url, **user):
    return f"""
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {user or {"token": "secret"}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
"""


def connect(client, url, **user):
    typed = {"name": "fra1", "way": "kubeconfig", "kubeconfig": kubeconfig(url, **user)}
    return client.post("/set-up/connect/", typed)


@pytest.fixture
def connected(admin, server):
    assert connect(admin, server.url).status_code == 302
    return Cluster.objects.get()


@pytest.mark.parametrize(("host", "way"), [("10.0.0.1", "pod"), (None, "kubeconfig")])
def test_cluster_that_weir_runs_in_is_offered_first_there(admin, monkeypatch, host, way):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if host:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    page = admin.get("/set-up/connect/").content.decode()

    assert f'<option value="{way}" selected>' in page


def test_link_of_the_first_admin_works_once(admin, client):
    assert User.objects.get().is_superuser
    client.logout()
    key = inviting.invite()
    assert client.get(f"/set-up/first/{key}/").status_code == 404


def test_link_whose_password_is_weak_stays_good(client, db):
    key = inviting.invite()
    answer = client.post(f"/set-up/first/{key}/", {"username": "boss", "password": "short"})
    assert list(answer.context["form"].errors) == ["password"]
    assert inviting.is_valid(key)


def test_unknown_link_is_absent(client, db):
    inviting.invite()
    assert client.get("/set-up/first/guess/").status_code == 404


def test_empty_installation_leads_to_the_first_step(admin):
    assert admin.get("/", follow=True).redirect_chain[-1][0] == "/set-up/connect/"
    assert admin.get("/set-up/queues/", follow=True).redirect_chain[-1][0] == "/set-up/connect/"


def test_way_to_share_is_chosen_among_the_queues(admin, connected):
    page = admin.get("/set-up/queues/").content.decode()
    assert all(said in unescape(page) for said in SAID.values())

    assert admin.post("/set-up/queues/", {"sharing": "throughput"}).url == "/set-up/queues/"
    assert Cluster.objects.get().sharing == "throughput"
    admin.post("/set-up/queues/", {"sharing": "luck"})
    assert Cluster.objects.get().sharing == "throughput"


def test_connected_cluster_is_observed_with_the_classes_found(connected):
    assert connected.mode == "observe"
    assert [c.name for c in connected.gpu_classes.all()] == ["l4"]
    kept = Credential.objects.get()
    assert (kept.name, kept.reference) == ("kubeconfig", connected.kubeconfig)
    assert "server" in read(connected.kubeconfig)
    assert "server" not in kept.sealed


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"exec": {"command": "touch", "args": ["never"]}}, "names a command to run. Weir never"),
        ({"tokenFile": "/etc/passwd"}, "names a file of the machine"),
    ],
)
def test_kubeconfig_that_runs_or_reads_is_refused_at_its_field(admin, server, tmp_path, user, said):
    answer = connect(admin, server.url, **user)
    assert answer.status_code == 400
    assert said in answer.context["form"].errors["kubeconfig"][0]
    assert not Cluster.objects.exists()
    assert "fra1" in answer.text


def test_cluster_that_does_not_answer_is_said_in_plain_words_and_not_kept(admin):
    answer = connect(admin, "http://127.0.0.1:9")
    assert "does not answer" in answer.context["form"].errors["kubeconfig"][0]
    assert not Cluster.objects.exists()
    assert not Credential.objects.exists()


def test_what_is_seen_counts_nodes_work_and_what_belongs_to_nothing(connected, admin):
    seen = admin.get("/set-up/seen/").context["seen"]
    assert (seen.nodes, seen.gpus, seen.usage, seen.down, seen.bare) == (2, 16, 6, 8, 1)


def test_proposal_hangs_what_one_label_calls_the_same_below_one_queue(connected, admin):
    rows = admin.get("/set-up/queues/").context["rows"]
    assert [(r["spec"].name, r["depth"], r["cells"]) for r in rows] == [
        ("research", 0, [("l4", "4")]),
        ("speech", 1, [("l4", "2")]),
        ("vision", 1, [("l4", "2")]),
        ("web", 0, [("l4", "2")]),
    ]


def test_proposal_adds_up_what_its_lowest_queues_are_given_of_what_is_ready(connected, admin):
    page = admin.get("/set-up/queues/")
    assert [(one.given, one.ready, one.left) for one in page.context["sums"]] == [(6, 8, 2)]
    assert "3 lowest queues, ready GPUs given" in page.text
    assert "6 of 8" in page.text


def test_proposal_is_kept_with_the_figures_as_typed(connected, admin):
    answer = admin.post("/set-up/queues/", {"keep": "1", "vision:l4": "6", **LOOKED})
    assert answer.status_code == 302, answer.context["faults"]
    nominal = dict(Quota.objects.values_list("queue__name", "nominal_gpus"))
    assert nominal == {"research": 8000, "speech": 2000, "vision": 6000, "web": 2000}


@pytest.mark.parametrize("way", ["keep", "file"])
def test_tree_that_takes_namespaces_that_stand_asks_about_each_first(connected, admin, way):
    tree = admin.get("/set-up/queues/").context["example"]
    asked = admin.post("/set-up/queues/", {way: "1", "tree": tree, "taking": ["web"]})

    assert asked.status_code == 400
    text = asked.text
    for said in ("namespace vision stands on the cluster with 1 pod,", "namespace speech stands"):
        assert said in text
    assert "namespace web stands" not in text
    assert text.count('name="taking"') == 3
    line = "kubectl label namespace web speech vision weir.dev/offered=true"
    assert f'<code class="command" id="offer" tabindex="0">{line}</code>' in text
    assert not Queue.objects.exclude(parent=None).exists()


def test_tree_by_the_api_takes_only_namespaces_that_it_says_were_looked_at(connected, admin):
    tree = {"queues": [{"name": "v", "namespace": "vision"}, {"name": "n", "namespace": "weir-n"}]}
    address = f"/api/v1/clusters/{connected.name}/tree"
    refused = admin.put(address, tree, content_type="application/json")

    assert (refused.status_code, refused.json()["code"]) == (400, "namespace_stands")
    assert refused.json()["remedy"].endswith("taking: vision.")
    assert not Queue.objects.exclude(parent=None).exists()
    said = {**tree, "taking": ["vision"]}
    assert admin.put(address, said, content_type="application/json").status_code == 200


def test_figure_that_is_none_changes_nothing_and_comes_back(connected, admin):
    answer = admin.post("/set-up/queues/", {"keep": "1", "vision:l4": "many"})
    assert answer.status_code == 400
    assert ("l4", "many") in answer.context["rows"][2]["cells"]
    assert not Queue.objects.exclude(parent=None).exists()


def test_file_with_one_fault_changes_nothing_and_names_line_and_path(connected, admin):
    tree = "queues:\n  - name: good\n    nominal: {l4: 2}\n  - name: bad\n    nominal:\n      h999: 1\n"
    answer = admin.post("/set-up/queues/", {"file": "1", "tree": tree})
    (fault,) = answer.context["faults"]
    assert "6" in fault
    assert "queues[1].nominal.h999" in fault
    assert not Queue.objects.exclude(parent=None).exists()
    assert answer.context["example"].strip() == tree.strip()


def test_proposal_as_a_file_says_the_same(connected, admin):
    tree = admin.get("/set-up/queues/").context["example"]
    assert admin.post("/set-up/queues/", {"file": "1", "tree": tree, **LOOKED}).status_code == 302
    assert Queue.objects.get(name="vision").path == "research/vision"


def test_classes_take_rate_and_price(connected, admin):
    found = GpuClass.objects.get()
    line = f"class-{found.pk}-"
    typed = {"act": "save", f"{line}name": "l4-24gb", f"{line}exchange_rate": "0.2"}
    answer = admin.post("/set-up/classes/", {**typed, f"{line}price_per_gpu_hour": "0.45"})
    assert answer.status_code == 302
    found.refresh_from_db()
    assert (found.name, found.exchange_rate) == ("l4-24gb", Decimal("0.2"))
    answer = admin.post("/set-up/classes/", {**typed, f"{line}price_per_gpu_hour": "much"})
    assert answer.status_code == 400
    assert "much" in answer.text


def test_priority_class_that_becomes_the_default_is_the_only_one(connected, admin):
    typed = {"act": "priority", "name": "low", "value": "10", "type": "training"}
    typed |= {"min_run_time_s": "0", "preemptible": "on", "is_default": "on"}
    assert admin.post("/set-up/classes/", typed).status_code == 302
    assert PriorityClass.objects.get(is_default=True).name == "low"


def test_every_step_has_a_page_and_enforce_ends_the_set_up(connected, admin):
    admin.post("/set-up/queues/", {"keep": "1", **LOOKED})
    admin.post("/set-up/people/", {"act": "teams"})
    typed = {"act": "give", "team": "vision", "user": "boss", "persona": "researcher"}
    assert admin.post("/set-up/people/", typed).status_code == 302
    for step in ("connect", "seen", "classes", "queues", "people", "would", "enforce"):
        page = admin.get(f"/set-up/{step}/")
        assert page.status_code == 200, step
        assert re.search(r"step \d of 7", page.text)
    assert admin.post("/set-up/enforce/").status_code == 400, (
        "what stays outside is to be read first"
    )
    assert Cluster.objects.get().mode == "observe"
    seen = re.search(r'name="left" value="(\w+)"', admin.get("/set-up/enforce/").text)
    assert admin.post("/set-up/enforce/", {"left": seen[1]}).status_code == 302
    assert Cluster.objects.get().mode == "enforce"


def test_who_does_not_administer_finds_no_set_up(connected, client):
    client.force_login(User.objects.create_user("other"))
    for path in ("/set-up/", "/set-up/connect/", "/set-up/enforce/"):
        assert client.get(path).status_code == 404
        assert client.post(path).status_code in (404, 405)


def planned(cluster, **fields):
    """The nodes on record that the first plan leaves there."""
    only = cluster.gpu_classes.get()
    for name in ("n1", "n2"):
        Node.objects.create(cluster=cluster, name=name, gpu_class=only, gpus=8000, **fields)


def test_enforce_says_first_what_stays_outside_and_what_is_refused(connected, admin):
    admin.post("/set-up/queues/", {"keep": "1", **LOOKED})
    planned(connected, foreign_gpus=3000)
    told = " ".join(admin.get("/set-up/enforce/").text.split())
    assert "leave 3 workloads with 6 GPUs outside" in told
    assert "without the label weir.dev/queue is refused in 3 namespaces" in told
    assert "level of their queue; all of them exist." in told
    assert "6 GPU" in admin.get("/set-up/would/").text


def test_enforce_does_not_say_of_the_web_servers_account_what_the_engines_has(
    connected, admin, monkeypatch
):
    monkeypatch.setattr(checkup, "is_asked_as_portal", lambda cluster: True)
    told = " ".join(admin.get("/set-up/enforce/").text.split())
    assert "kubectl -n weir-system exec deployment/weir-engine -- python manage.py doctor" in told
    assert "of kind Job" not in told
    assert "Everything that enforcing needs is there" not in told


def test_enforce_has_the_line_that_offers_namespaces_to_be_copied(connected, admin, monkeypatch):
    """Where enforce.yaml's policy holds the engine to what was offered."""
    monkeypatch.setattr(checkup, "_stands", lambda client, path: True)
    admin.post("/set-up/queues/", {"keep": "1", **LOOKED})

    told = admin.get("/set-up/enforce/").text

    line = "kubectl label namespace speech vision web weir.dev/offered=true"
    assert re.search(rf'<code class="command" id="(command-\d)" tabindex="0">{line}</code>', told)
    assert 'data-copy="#command-1"' in told
    assert "Check again" in told
    assert "kubectl apply" not in told, "the rights are there"


def misspelt(admin, **more):
    tree = "queues: [{name: a, namespace: vsion}, {name: b, namespace: other}]"
    return admin.post("/set-up/queues/", {"file": "1", "tree": tree, **more})


@pytest.mark.parametrize("making", [[], ["other"], ["vision"]])
def test_namespace_of_a_file_that_is_not_there_is_asked_about(connected, admin, making):
    asked = misspelt(admin, making=making)
    assert asked.status_code == 400
    assert "fra1 has no namespace of these names" in asked.text
    assert "vsion: did you mean vision?" in asked.text
    assert asked.text.count('name="making"') == 2
    assert not Queue.objects.exclude(parent=None).exists()


def test_namespace_that_is_meant_is_named_before_it_is_made(connected, admin):
    assert misspelt(admin, making=["vsion", "other"]).status_code == 302
    planned(connected)
    told = unescape(admin.get("/set-up/enforce/").text)
    assert "other and vsion do not exist and are made." in told


def test_cluster_that_does_not_answer_keeps_nobody_from_reading_what_enforcing_does(
    connected, admin
):
    admin.post("/set-up/queues/", {"keep": "1", **LOOKED})
    Cluster.objects.update(kubeconfig="", api_url="https://127.0.0.1:1")
    assert "one that does not exist is made" in " ".join(
        effects(Cluster.objects.get(), ClusterMode.ENFORCE)
    )


def test_currency_and_time_zone_are_asked_beside_the_prices(
    connected, admin, django_capture_on_commit_callbacks
):
    typed = {"act": "display", "currency": "USD", "display_time_zone": "America/Denver"}
    with django_capture_on_commit_callbacks(execute=True):
        assert admin.post("/set-up/classes/", typed).status_code == 302
    connected.refresh_from_db()
    assert (connected.currency, connected.display_time_zone) == ("USD", "America/Denver")
    assert "Price per GPU-hour, USD" in admin.get("/set-up/classes/").text
    entry = AuditEntry.objects.get(kind="cluster.display_set")
    assert entry.before == {"currency": "EUR", "display_time_zone": "UTC"}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("currency", "euro", "Write three letters: USD."),
        ("display_time_zone", "Mars", "Unknown time zone."),
    ],
)
def test_currency_or_zone_that_is_none_is_refused_at_its_field(
    connected, admin, field, value, said
):
    typed = {"act": "display", "currency": "USD", "display_time_zone": "UTC", field: value}
    answer = admin.post("/set-up/classes/", typed)
    assert answer.status_code == 400
    assert said in answer.context["display"].errors[field][0]
    assert Cluster.objects.get().currency == "EUR"


@pytest.mark.parametrize(("mode", "stands"), [("observe", False), ("enforce", True)])
def test_classes_and_prices_stand_in_the_menu_once_the_set_up_is_over(
    connected, admin, mode, stands
):
    Cluster.objects.update(mode=mode)
    page = admin.get("/teams/").text
    assert ('href="/set-up/classes/?cluster=fra1"' in page) is stands


def test_file_that_guarantees_more_than_there_is_says_so(connected, admin):
    planned(connected)
    name = connected.gpu_classes.get().name
    tree = f"queues: [{{name: a, nominal: {{{name}: 300}}}}]"
    page = admin.post("/set-up/queues/", {"file": "1", "tree": tree}, follow=True).text
    assert "1 queue set." in page
    assert f"Guaranteed are 300 {name}, installed 16" in page
    assert "nominal" in admin.get("/set-up/queues/").text
    assert "300" in admin.get("/set-up/queues/").text


def test_slice_is_proposed_as_its_part_of_a_gpu(connected):
    whole = connected.gpu_classes.get()
    sliced = GpuClass(cluster=connected, name="mig", resource_name="nvidia.com/mig-1g.5gb")
    chosen = GpuClass(cluster=connected, name="m", resource_name="nvidia.com/mig-1g.5gb")
    chosen.exchange_rate = Decimal("0.5")
    assert [proposed_rate(one) for one in (whole, sliced)] == [1, Decimal("0.1429")]
    assert ClassForm(None, gpu_class=chosen).initial["exchange_rate"] == Decimal("0.5")
    assert ClassForm(None, gpu_class=sliced).initial["exchange_rate"] == Decimal("0.1429")


def test_rate_of_one_that_was_kept_is_not_proposed_away_once_there_are_queues(connected):
    sliced = GpuClass(cluster=connected, name="mig", resource_name="nvidia.com/mig-1g.5gb")
    root = connected.queues.get(parent=None)
    Queue.objects.create(cluster=connected, name="vision", parent=root)
    assert ClassForm(None, gpu_class=sliced).initial["exchange_rate"] == 1


def test_classes_are_found_after_the_set_up_from_the_engines_page(connected, admin):
    page = admin.get("/c/fra1/cluster/").text
    assert 'href="/set-up/classes/?cluster=fra1"' in page
    assert 'href="/set-up/connect/"' in page
    other = Cluster.objects.create(name="other", mode="observe")
    assert admin.get("/set-up/classes/?cluster=fra1").context["cluster"] == connected
    assert admin.get("/set-up/classes/?cluster=other").context["cluster"] == other


def test_file_that_replaces_says_what_it_replaces_and_what_stays(connected, admin):
    trees = (
        "queues: [{name: a, nominal: {l4: 6}}, {name: b, nominal: {l4: 2}}]",
        "queues: [{name: a, nominal: {l4: 4}, priority: 2, borrowing_limit: {l4: 8}}, {name: c}]",
    )
    first, second = (
        unescape(admin.post("/set-up/queues/", {"file": "1", "tree": tree}, follow=True).text)
        for tree in trees
    )
    assert "Replaced:" not in first
    said = "Replaced: priority of a 0 → 2; nominal of a 6 → 4 l4; borrowing limit of a all → 8 l4."
    plain = " ".join(second.split())
    assert f"{said} 1 queue that it does not name stays." in plain, re.findall(
        "Replaced.{200}", plain
    )
