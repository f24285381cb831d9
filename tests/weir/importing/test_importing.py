"""What Kueue and Slurm have becomes a tree here, and what has no counterpart is said first."""

import json
from pathlib import Path

import pytest
import yaml

from scheduling.models import Cluster, GpuClass, Queue, QuotaChange
from weir.importing.findings import Findings, Names

HERE = Path(__file__).parent
KUEUE, SLURM = str(HERE / "kueue.yaml"), str(HERE / "slurm.cfg")
OF_SLURM = ("import", "slurm", SLURM, "--class", "h100=h100-80gb", "--class", "a100=a100-40gb")


@pytest.fixture
def cluster(db):
    from tests.factories import example_cluster

    return example_cluster()


def read(weir, *words, input=None):
    done = weir("-o", "json", *words, user="admin", input=input)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def walk(queues):
    for queue in queues:
        yield queue["name"], queue
        yield from walk(queue.get("queues", []))


def left_of(told):
    return {(row["what"], place) for row in told["left"] for place in row["at"]}


def test_kueue_cohorts_hold_what_their_queues_hold_and_their_own(weir, cluster):
    queues = dict(walk(read(weir, "import", "kueue", KUEUE)["queues"]))
    assert {name: q.get("nominal") for name, q in queues.items()} == {
        "lab": {"h100": 28}, "models": {"h100": 24}, "team-a": {"h100": 16}, "team-b": {"h100": 8},
        "b-train": None, "b-eval": None, "alone": {"h100": 2},
    }  # fmt: skip
    assert queues["team-a"]["borrowing_limit"] == {"h100": 8}
    assert queues["team-a"]["lending_limit"] == {"h100": 12}
    assert (queues["models"]["weight"], queues["team-b"]["weight"]) == ({"h100": 3}, {"h100": 2})


def test_kueue_root_cohorts_and_queues_without_one_neither_borrow_nor_lend(weir, cluster):
    for queue in read(weir, "import", "kueue", KUEUE)["queues"]:
        assert queue["borrowing_limit"] == queue["lending_limit"] == {"h100": 0}


def test_kueue_namespaces_come_from_local_queues(weir, cluster):
    queues = dict(walk(read(weir, "import", "kueue", KUEUE)["queues"]))
    assert {n: q["namespace"] for n, q in queues.items() if "namespace" in q} == {
        "team-a": "team-a-jobs", "b-train": "b-train", "b-eval": "b-eval",
    }  # fmt: skip


def test_namespace_that_stands_is_taken_once_its_taking_is_said(weir, cluster, monkeypatch):
    from portal.teams import namespaces

    stands = {"b-train": "1 pod, which runs as default"}
    monkeypatch.setattr(namespaces, "what_stands", lambda _, name: stands.get(name))
    words = ("import", "kueue", KUEUE, "--apply", "-y")
    refused = weir(*words, user="admin")
    assert refused.exit_code != 0
    assert "say so with taking: b-train" in refused.output
    assert not Queue.objects.filter(name="b-train").exists()

    assert weir(*words, "--taking", "b-train", user="admin").exit_code == 0
    assert Queue.objects.get(name="b-train").namespace == "b-train"


def test_kueue_dry_run_names_what_has_no_counterpart_and_saves_nothing(weir, cluster):
    assert left_of(read(weir, "import", "kueue", KUEUE)) == {
        ("its name", "ClusterQueue team_a"),
        ("spec.preemption", "ClusterQueue team_a"),
        ("spec.queueingStrategy", "ClusterQueue team_a"),
        ("quota of cpu", "ClusterQueue team_a"),
        ("2 namespaces", "ClusterQueue team-b"),
        ("no LocalQueue", "ClusterQueue alone"),
        ("its levels", "Topology zones"),
        ("the object", "ResourceFlavor cpu-only"),
        ("the object", "AdmissionCheck autoscale"),
    }
    said = weir("import", "kueue", KUEUE, user="admin")
    assert said.exit_code == 0, said.output
    assert "pool=training" in said.stdout
    assert "new, below models" in said.stdout
    assert "Topology levels: example.com/block; example.com/rack" in said.stdout
    assert not Queue.objects.filter(name="lab").exists()
    assert not GpuClass.objects.filter(name="h100").exists()


def test_kueue_applied_is_in_force_and_applied_again_changes_nothing(weir, cluster):
    text = Path(KUEUE).read_text()
    done = weir("import", "kueue", "-", "--apply", "-y", user="admin", input=text)
    assert done.exit_code == 0, done.output
    made = GpuClass.objects.get(cluster=cluster, name="h100")
    assert made.node_labels == {"pool": "training"}
    assert made.cluster.topology_levels == "example.com/block; example.com/rack"
    assert Queue.objects.get(name="team-b").parent.name == "models"
    assert Queue.objects.get(name="team-a").namespace == "team-a-jobs"
    change = QuotaChange.objects.latest("pk")
    assert (change.reason, change.author.username) == ("Imported from Kueue", "admin")
    tree = weir("quota", "export", user="admin").stdout
    assert dict(walk(yaml.safe_load(tree)["queues"]))["team-a"]["nominal"] == {"h100": 16}
    again = weir("import", "kueue", KUEUE, "--apply", user="admin")
    assert again.exit_code == 0, again.output
    assert "The file says what is in force." in again.stdout
    assert QuotaChange.objects.latest("pk") == change


def test_import_asks_before_it_makes_and_no_makes_nothing(weir, cluster):
    done = weir("import", "kueue", KUEUE, "--apply", user="admin", input="n\n")
    assert done.exit_code == 1
    assert "Make 1 GPU class and" in done.stderr
    assert not GpuClass.objects.filter(name="h100").exists()


@pytest.mark.parametrize("user", ["researcher", "lead"])
def test_import_by_who_does_not_administer_is_refused(weir, cluster, user):
    done = weir("import", "kueue", KUEUE, "--apply", "-y", user=user)
    assert done.exit_code == 4
    assert not Queue.objects.filter(name="lab").exists()


KUEUE_BROKEN = {
    "no queue": ("kind: ResourceFlavor\nmetadata: {name: x}\n", "There is no ClusterQueue in it."),
    "no yaml": ("kind: [", ":1: "),
    "circle": (
        "kind: ClusterQueue\nmetadata: {name: q}\nspec: {cohortName: a}\n---\n"
        "kind: Cohort\nmetadata: {name: a}\nspec: {parentName: b}\n---\n"
        "kind: Cohort\nmetadata: {name: b}\nspec: {parentName: a}\n",
        "Cohorts hang in a circle: a below b below a.",
    ),
    "amount": (
        "kind: ClusterQueue\nmetadata: {name: q}\nspec: {resourceGroups: [{flavors: [{name: f, "
        "resources: [{name: nvidia.com/gpu, nominalQuota: many}]}]}]}\n",
        "ClusterQueue q: 'many' is no amount of GPUs.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KUEUE_BROKEN)
def test_kueue_file_that_is_none_is_refused_with_its_place(weir, cluster, case):
    text, sentence = KUEUE_BROKEN[case]
    done = weir("import", "kueue", "-", user="admin", input=text)
    assert done.exit_code == 1
    assert sentence in done.stderr


def test_kueue_mig_beside_whole_gpus_of_a_flavor_is_a_class_of_its_own(weir, cluster):
    text = (
        "kind: ClusterQueue\nmetadata: {name: q}\nspec: {resourceGroups: [{flavors: [{name: f, resources: ["
        "{name: nvidia.com/gpu, nominalQuota: 2}, {name: nvidia.com/mig-1g.10gb, nominalQuota: 7}]}]}]}\n"
    )
    told = read(weir, "import", "kueue", "-", input=text)
    assert [c["name"] for c in told["gpu_classes"]] == ["f", "f-mig-1g.10gb"]
    assert told["queues"][0]["nominal"] == {"f": 2, "f-mig-1g.10gb": 7}


def test_slurm_fair_share_becomes_weight_and_a_cap_the_limit_above_nothing(weir, cluster):
    queues = dict(walk(read(weir, *OF_SLURM)["queues"]))
    assert queues["phys-sci"]["weight"] == {"h100-80gb": 60, "a100-40gb": 60}
    assert queues["phys-sci"]["borrowing_limit"] == {"h100-80gb": 32}
    assert "nominal" not in queues["phys-sci"]
    assert [q["name"] for q in queues["phys-sci"]["queues"]] == ["astro", "phys-sci-own"]
    assert queues["phys-sci-own"]["weight"]["h100-80gb"] == 5


def test_slurm_dry_run_names_what_has_no_counterpart(weir, cluster):
    left = left_of(read(weir, *OF_SLURM))
    assert {
        ("GrpJobs", "Account Phys_Sci"), ("GrpTRES cpu", "Account Phys_Sci"),
        ("GrpTRES gres/gpu", "Account chem"), ("2 users", "Account Phys_Sci"),
        ("FairShare=parent", "Account astro"), ("QOS", "Cluster tux"), ("its name", "Account Phys_Sci"),
    } <= left  # fmt: skip
    assert not any("Description" in what for what, _ in left)


def test_slurm_applied_is_in_force(weir, cluster):
    known = Cluster.objects.get().gpu_classes.values_list("name", flat=True)
    done = weir(
        "import", "slurm", SLURM, "--class", f"h100={known[0]}", "--apply", "-y", user="admin"
    )
    assert done.exit_code == 0, done.output
    assert Queue.objects.get(name="chem").parent.is_root
    tree = dict(walk(yaml.safe_load(weir("quota", "export", user="admin").stdout)["queues"]))
    assert tree["chem"]["weight"] == {known[0]: 40}
    assert tree["chem"]["borrowing_limit"] == {known[0]: 8}


WRITTEN = """QOS - 'gpu':Description='gpu':MaxWallDurationPerJob=2880:Priority=200
Cluster - 'tux':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'bio':Description='bio':Organization='sci':Fairshare=60:grptres=gres/gpu:h100=8
Account - 'geo':Description='geo':Organization='sci':Fairshare=parent
"""
"""As sacctmgr writes it: lines of QOS first, and names otherwise than in its manual."""


def test_slurm_options_are_read_in_any_case_and_lines_of_qos_are_left(weir, cluster):
    told = read(weir, "import", "slurm", "-", "--class", "h100=h100-80gb", input=WRITTEN)
    queues = dict(walk(told["queues"]))

    assert queues["bio"]["weight"] == {"h100-80gb": 60}
    assert queues["bio"]["borrowing_limit"] == {"h100-80gb": 8}
    assert {("QOS", "QOS gpu"), ("FairShare=parent", "Account geo")} <= left_of(told)
    assert not any(what == "Fairshare" for what, _ in left_of(told))


SLURM_BROKEN = {
    "no line of it": ("Account 'x'\n", "Line 1 is none of sacctmgr dump."),
    "parent unknown": ("Cluster - 'c'\nParent - 'x'\n", "Line 2: the account x is not above."),
    "twice": ("Account - 'x':\nAccount - 'x':\n", "Line 2: the account x is there twice."),
    "empty": ("# nothing\n", "There is no account in it."),
}


@pytest.mark.parametrize("case", SLURM_BROKEN)
def test_slurm_file_that_is_none_is_refused_with_its_line(weir, cluster, case):
    text, sentence = SLURM_BROKEN[case]
    done = weir("import", "slurm", "-", "--class", "a=b", user="admin", input=text)
    assert done.exit_code == 1
    assert sentence in done.stderr


def test_slurm_class_without_type_is_refused(weir, cluster):
    done = weir("import", "slurm", SLURM, "--class", "h100", user="admin")
    assert done.exit_code == 1
    assert "TYPE=CLASS" in done.stderr


@pytest.mark.parametrize(
    ("names", "given"),
    [(["a_b", "a-b"], ["a-b", "a-b-2"]), (["Ä"], ["queue"]), (["x" * 70], ["x" * 63])],
)
def test_names_are_labels_and_each_is_one_of_its_own(names, given):
    found = Findings()
    taking = Names(found)
    assert [taking.give(name, name) for name in names] == given
    assert all(row.what == "its name" for row in found.left)
