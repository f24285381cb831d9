import csv
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from django.utils import timezone

from portal.accounts.models import User
from portal.approvals.models import QuotaRequest
from portal.reports.kinds import REPORTS
from scheduling.cluster.connection.client import NotFoundError
from scheduling.models import Cluster, PriorityClass, Quota, StartForecast, State, Workload
from scheduling.services.words import endings
from tests.factories import make_workload
from tests.portal.kubernetes import job
from tests.weir.conftest import lines
from weir.commands.options import LengthOfTime
from weir.commands.reports import _shown, _write

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
JOB = ("submit", "--name", "probe", "--queue", "pretraining", "--image", "registry.example.org/probe:1",
       "--class", "h100-80gb", "--limit", "3600", "--gpus", "8")  # fmt: skip


def test_ls_shows_what_the_person_may_see(weir, cluster):
    heads, *rows = lines(weir("ls", user="researcher"))
    assert heads[:4] == ["NAME", "QUEUE", "USER", "STATE"]
    assert {row[1] for row in rows} <= {"pretraining", "alignment"}


def test_ls_says_why_in_a_sentence_and_of_what_ended_badly_its_end(weir, cluster):
    queue = cluster.queues.get(name="pretraining")
    said = "pretraining holds its fair share."
    make_workload(
        queue, name="waits", state=State.PENDING, reason="above_fair_share", sentence=said
    )
    make_workload(
        queue, name="broke", state=State.FINISHED, outcome="failed", cause="out_of_memory"
    )
    shown = weir("ls", "--all", user="researcher").stdout
    assert said in shown
    assert endings.sentence(Workload.objects.get(name="broke")) in shown


def test_ls_leaves_out_what_is_over_unless_it_is_asked_for(weir, cluster):
    queue = cluster.queues.get(name="pretraining")
    make_workload(queue, name="gone", state=State.FINISHED)
    assert "gone" not in weir("ls", user="researcher").stdout
    assert "gone" in weir("ls", "--all", user="researcher").stdout


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("6h", 21_600), ("1d12h", 129_600), ("1 d 12 h", 129_600), ("30min", 1800), ("3600", 3600)],
)
def test_length_of_time_is_read_as_people_write_it(typed, seconds):
    assert LengthOfTime().convert(typed, None, None) == seconds


@pytest.mark.parametrize("typed", ["6 hours", "soon", "", "-1", "0", "h6"])
def test_what_is_no_length_of_time_says_how_to_write_one(weir, cluster, typed):
    done = weir(*JOB, "--limit", typed, user="researcher")
    assert done.exit_code == 2
    assert "write 6h, 30min or 1d12h" in done.output or "too short" in done.output


def test_ls_for_a_script_is_what_the_api_answers(weir, cluster):
    done = weir("-o", "json", "ls", user="researcher")
    assert {"uid", "reason", "sentence"} <= json.loads(done.stdout)[0].keys()
    done = weir("-o", "yaml", "ls", "--limit", "1", user="researcher")
    assert len(yaml.safe_load(done.stdout)) == 1


def test_clusters_are_listed_with_their_own_time_and_how_long_ago_they_were_planned(weir, cluster):
    hour_ago = timezone.now() - HOUR
    start = {"clock_real": timezone.now(), "clock_start": datetime(2031, 2, 3, 12, tzinfo=UTC)}
    Cluster.objects.filter(pk=cluster.pk).update(planned_at=hour_ago, **start)
    heads, row = lines(weir("clusters", user="researcher"))
    assert heads == ["CLUSTER", "MODE", "ITS TIME", "LAST CYCLE"]
    assert row[2].startswith("2031-02-03 ")
    assert row[3].startswith("1 h")
    assert row[3].endswith(" ago")


def test_why_tells_the_sentence_of_the_engine(weir, cluster):
    work = Workload.objects.filter(queue__name="pretraining").exclude(sentence="").first()
    done = weir("why", work.name, user="researcher")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0]
    assert done.stdout == weir("why", work.uid, user="researcher").stdout or work.uid.startswith(
        "uid"
    )


def test_why_of_work_that_ended_says_how_and_when(weir, cluster):
    queue = cluster.queues.get(name="pretraining")
    done = make_workload(
        queue, name="done", state=State.FINISHED, outcome="succeeded", finished_at=cluster.now()
    )
    shown = weir("why", done.name, user="researcher").stdout
    assert shown.startswith("It has ended: succeeded.")
    assert "\nEnded " in shown


def test_why_of_what_one_may_not_see_is_as_of_what_is_not_there(weir, cluster):
    other = Workload.objects.filter(queue__name="assistant").first()
    sealed, absent = (
        weir("why", other.name, user="researcher"),
        weir("why", "nobody", user="researcher"),
    )
    assert sealed.exit_code == absent.exit_code == 4
    assert sealed.stderr.replace(other.name, "nobody") == absent.stderr


def test_name_that_two_workloads_have_asks_for_the_uid(weir, cluster):
    queue = cluster.queues.get(name="pretraining")
    twins = [make_workload(queue, name="twin", namespace=space) for space in ("one", "two")]
    done = weir("why", "twin", user="researcher")
    assert done.exit_code == 1
    assert all(twin.uid in done.stderr for twin in twins)


def test_eta_of_what_has_no_forecast_says_so(weir, cluster):
    waiting = Workload.objects.filter(queue__name="pretraining", state=State.PENDING).first()
    assert "No start is predicted." in weir("eta", waiting.name, user="researcher").stdout


def test_eta_whose_p50_has_passed_names_the_latest_alone(weir, cluster):
    waiting = Workload.objects.filter(queue__name="pretraining", state=State.PENDING).first()
    now = cluster.now()
    StartForecast.objects.update_or_create(
        workload=waiting,
        defaults={"at": now - HOUR, "p50_at": now - HOUR / 6, "p90_at": now + HOUR},
    )
    assert weir("eta", waiting.name, user="researcher").stdout.startswith("Any moment, by ")


def places(text):
    """Every place in line that is said in ``text``."""
    return set(re.findall(r"\b[Pp]lace(?: in its queue)?\W+(\d+)", re.sub(r"<[^>]+>", " ", text)))


@pytest.mark.parametrize(("held", "place"), [(False, {"3"}), (True, set())])
def test_place_in_line_is_one_number_on_its_page_in_commands_and_by_the_api(
    weir, cluster, client, held, place
):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Workload.objects.filter(pk=work.pk).update(position=3, held=held)
    client.force_login(User.objects.get(username="m.okafor"))
    row = client.get(f"/api/v1/clusters/fra1/workloads/{work.uid}").json()
    said = [
        client.get(f"/c/fra1/w/{work.uid}/").content.decode(),
        weir("why", work.name, user="m.okafor").stdout,
        weir("eta", work.name, user="m.okafor").stdout,
    ]
    assert [places(text) for text in said] == [place] * len(said)
    assert {str(row["position"])} - {"None"} == place


def test_submit_of_fields_makes_the_job(weir, kube):
    done = weir(*JOB, "--", "python", "-m", "train", user="researcher")
    assert done.exit_code == 0, done.output
    made = kube.get(job("pretraining", "probe"))
    assert made["spec"]["template"]["spec"]["containers"][0]["command"] == ["python", "-m", "train"]


def test_submit_asks_for_segments(weir, kube):
    near = ("--pods", "4", "--segment", "2", "--segment-in", "node")
    done = weir(*JOB[:-1], "4", *near, user="researcher")
    assert done.exit_code == 0, done.output
    notes = kube.get(job("pretraining", "probe"))["metadata"]["annotations"]
    assert "weir.dev/topology-required" not in notes
    assert (notes["weir.dev/segment-size"], notes["weir.dev/segment-required"]) == ("2", "node")


def test_submit_of_a_segment_without_a_level_says_what_is_missing(weir, kube):
    done = weir(*JOB, "--segment", "2", user="researcher")
    assert done.exit_code == 1
    assert "Say the size of a segment and its level" in done.stderr


def test_submit_that_is_refused_names_every_field(weir, kube):
    done = weir(*JOB[:-1], "9000", user="researcher")
    assert done.exit_code == 2
    done = weir(*(word.replace("h100-80gb", "k80") for word in JOB), user="researcher")
    assert done.exit_code == 1
    assert "gpu_classes: There is no GPU class k80" in done.stderr


def test_submit_of_a_manifest_that_is_no_yaml_names_file_and_line(weir, cluster, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text("kind: Job\nmetadata: [\n")
    done = weir("submit", "-f", str(file), user="researcher")
    assert done.exit_code == 1
    assert f"{file}:3:" in done.stderr


def test_submit_without_what_it_needs_is_not_understood(weir, cluster):
    done = weir("submit", "--name", "probe", user="researcher")
    assert done.exit_code == 2
    assert "--queue is missing" in done.stderr


def test_option_that_there_is_not_is_refused_and_no_part_of_the_command(weir, kube, cluster):
    done = weir(*JOB, "--run-time-limit", "6h", "--", "python", user="researcher")
    assert done.exit_code == 2
    assert "No such option '--run-time-limit'" in done.stderr
    with pytest.raises(NotFoundError):
        kube.get(job("pretraining", "probe"))


def test_command_begins_at_its_first_word_and_keeps_its_own_options(weir, kube):
    done = weir(*JOB, "python", "--name", "other", user="researcher")
    assert done.exit_code == 0, done.output
    made = kube.get(job("pretraining", "probe"))
    assert made["spec"]["template"]["spec"]["containers"][0]["command"] == [
        "python",
        "--name",
        "other",
    ]


def test_cancel_asks_first_and_touches_nothing_on_no(weir, kube, cluster):
    weir(*JOB, user="researcher")
    make_workload(cluster.queues.get(name="pretraining"), name="probe")
    done = weir("cancel", "probe", user="researcher", input="n\n")
    assert done.exit_code == 1
    assert kube.get(job("pretraining", "probe"))


def test_several_are_held_and_each_that_is_refused_is_named(weir, kube, cluster):
    weir(*JOB, user="researcher")
    made = kube.get(job("pretraining", "probe"))["metadata"]["uid"]
    queue = cluster.queues.get(name="pretraining")
    make_workload(queue, uid=made, name="probe", user="researcher")
    make_workload(queue, name="runs", user="researcher", state=State.RUNNING)
    done = weir("hold", "runs", "probe", user="researcher")
    assert done.exit_code == 1
    assert "probe: held." in done.stdout
    assert "runs: runs does not wait: it is running." in done.stderr


def test_priority_gives_the_class_to_all_that_are_named(weir, kube, cluster):
    weir(*JOB, user="researcher")
    made = kube.get(job("pretraining", "probe"))["metadata"]["uid"]
    make_workload(cluster.queues.get(name="pretraining"), uid=made, name="probe", user="researcher")
    name = PriorityClass.objects.order_by("value").first().name
    done = weir("priority", name, "probe", user="researcher")
    assert done.exit_code == 0, done.output
    labels = kube.get(job("pretraining", "probe"))["metadata"]["labels"]
    assert labels["weir.dev/priority-class"] == name


def test_cancel_of_one_that_is_not_there_cancels_none(weir, cluster):
    mine = Workload.objects.filter(queue__name="pretraining", user="researcher").first()
    done = weir("cancel", "-y", mine.name if mine else "x", "nobody", user="researcher")
    assert done.exit_code == 4


def test_sooner_tells_what_the_engine_finds(weir, kube):
    waiting = Workload.objects.filter(queue__name="pretraining", state=State.PENDING).first()
    done = weir("sooner", waiting.name, user="researcher")
    assert done.exit_code == 0, done.output
    assert done.stdout


def test_queues_shows_shares(weir, cluster):
    heads, *rows = lines(weir("queues", user="lead"))
    assert heads == ["QUEUE", "CLASS", "NOMINAL", "ALLOCATED", "FAIR SHARE", "POTENTIAL", "PENDING"]
    assert "research/language/pretraining" in {row[0].removeprefix("fra1/") for row in rows}


def test_quota_get_shows_what_is_in_force(weir, cluster):
    heads, *rows = lines(weir("quota", "get", "--queue", "pretraining", user="lead"))
    assert heads[:3] == ["QUEUE", "CLASS", "NOMINAL"]
    assert {row[0] for row in rows} == {"pretraining"}


def test_quota_preview_saves_nothing(weir, kube):
    before = Quota.objects.count()
    done = weir("quota", "preview", "pretraining", "h100-80gb.nominal=1", user="lead")
    assert done.exit_code == 0, done.output
    assert Quota.objects.count() == before


def test_quota_set_changes_the_named_figures(weir, cluster):
    done = weir("quota", "set", "pretraining", "h100-80gb.borrowing_limit=3", "--reason", "less", "-y",
                user="lead")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "pretraining h100-80gb borrowing_limit:" in done.stdout
    newest = Quota.objects.filter(queue__name="pretraining").order_by("-pk").first()
    assert newest.borrowing_limit_gpus == 3000


@pytest.mark.parametrize(
    "edit", ["h100-80gb.nominal", "nominal=4", "h100-80gb.rank=4", "h100-80gb.nominal=many"]
)
def test_quota_edit_that_is_not_understood_is_quoted(weir, cluster, edit):
    done = weir("quota", "set", "pretraining", edit, "--reason", "x", "-y", user="lead")
    assert done.exit_code == 2
    assert edit in done.stderr


def test_quota_set_without_the_right_is_refused(weir, cluster):
    done = weir(
        "quota",
        "set",
        "pretraining",
        "h100-80gb.nominal=4",
        "--reason",
        "x",
        "-y",
        user="researcher",
    )
    assert done.exit_code == 1
    assert "You may not edit quotas" in done.stderr


def test_loan_is_asked_for_consented_to_and_given_back(weir, kube):
    terms = ("--class", "h100-80gb", "--gpus", "2", "--until", "2030-01-01T00:00:00Z")
    asked = weir("-o", "json", "loan", "ask", "--for", "alignment", "--of", "vision", *terms,
                 "--reason", "DPO", user="lead")  # fmt: skip
    number = str(json.loads(asked.stdout)["id"])
    assert "running" in weir("loan", "consent", number, user="lead").stdout
    _, row = lines(weir("loan", "ls", user="lead"))
    assert row[:3] == [number, "vision", "alignment"]
    assert "ended" in weir("loan", "give-back", number, user="lead").stdout


def test_quota_change_is_listed_and_reverted_by_its_number(weir, cluster):
    weir(
        "quota",
        "set",
        "pretraining",
        "h100-80gb.borrowing_limit=3",
        "--reason",
        "less",
        "-y",
        user="lead",
    )
    newest = json.loads(weir("-o", "json", "quota", "changes", user="lead").stdout)[0]
    assert newest["reason"] == "less"

    done = weir("quota", "revert", str(newest["id"]), "--reason", "back", "-y", user="lead")
    assert done.exit_code == 0, done.output
    assert "pretraining h100-80gb borrowing limit 3 → " in done.stdout


def test_quota_apply_of_what_is_in_force_asks_nothing(weir, cluster, tmp_path):
    file = tmp_path / "tree.yaml"
    file.write_text(weir("quota", "export", user="admin").stdout)
    done = weir("quota", "apply", "-f", str(file), "--reason", "same", user="admin")
    assert (done.exit_code, done.stdout) == (0, "The file says what is in force.\n")


def test_quota_apply_of_a_file_without_queues_says_how_to_begin(weir, cluster, tmp_path):
    file = tmp_path / "tree.yaml"
    file.write_text("tree: []\n")
    done = weir("quota", "apply", "-f", str(file), "--reason", "x", "-y", user="admin")
    assert done.exit_code == 1
    assert "Begin it with: queues:" in done.stderr


def test_exported_tree_differs_in_nothing_from_what_is_in_force(weir, cluster, tmp_path):
    file = tmp_path / "tree.yaml"
    file.write_text(weir("quota", "export", user="admin").stdout)
    done = weir("quota", "diff", "-f", str(file), user="admin")
    assert (done.exit_code, done.stdout) == (0, "The file says what is in force.\n")


def test_diff_names_each_figure_that_apply_would_change_and_then_there_is_none(
    weir, cluster, tmp_path
):
    file = tmp_path / "tree.yaml"
    file.write_text(
        "queues:\n"
        "  - name: research\n"
        "    queues:\n"
        "      - {name: vision, nominal: {h100-80gb: 9}, borrowing_limit: {h100-80gb: 2}}\n"
        "      - {name: robots, weight: {h100-80gb: 2}}\n"
    )
    done = weir("-o", "json", "quota", "diff", "-f", str(file), user="admin")
    lines = {(d["queue"], d["what"]): (d["before"], d["after"]) for d in json.loads(done.stdout)}
    assert done.exit_code == 6
    assert lines == {
        ("vision", "h100-80gb nominal"): (16, 9),
        ("vision", "h100-80gb borrowing limit"): (16, 2),
        ("robots", "queue"): (None, "new, below research"),
        ("robots", "h100-80gb weight"): (1, 2),
    }
    weir("quota", "apply", "-f", str(file), "--reason", "More robots", "-y", user="admin")
    assert weir("quota", "diff", "-f", str(file), user="admin").exit_code == 0


def test_lead_keeps_the_own_subtree_in_a_file(weir, cluster, tmp_path):
    file = tmp_path / "research.yaml"
    own = ("--queue", "research")
    file.write_text(weir("quota", "export", *own, user="lead").stdout)
    same = weir("quota", "diff", "-f", str(file), *own, user="lead")
    assert (same.exit_code, same.stdout) == (0, "The file says what is in force.\n")
    file.write_text("queues: [{name: vision, nominal: {h100-80gb: 9}}]")
    done = weir("quota", "apply", "-f", str(file), *own, "--reason", "x", "-y", user="lead")
    assert (done.exit_code, done.stdout) == (0, "research/vision\n")
    again = weir("quota", "diff", "-f", str(file), *own, user="lead")
    assert again.exit_code == 0


def test_tree_is_exported_as_of_a_day(weir, cluster):
    now = yaml.safe_load(weir("quota", "export", user="admin").stdout)
    before = weir("quota", "export", "--at", "1999-01-05T10:00:00Z", user="admin").stdout
    assert "nominal" in yaml.safe_dump(now)
    assert "nominal" not in before


def test_request_is_asked_for_forwarded_and_approved(weir, kube):
    done = weir("request", "new", "boost", "--queue", "pretraining", "--class", "h100-80gb", "--gpus", "2",
                "--until", "2126-12-01T00:00:00Z", "--reason", "Paper deadline", "--draft",
                user="researcher")  # fmt: skip
    assert done.exit_code == 0, done.output
    kept = QuotaRequest.objects.get()
    assert str(kept.pk) in weir("request", "ls", "--state", "mine", user="researcher").stdout
    assert "draft" in weir("request", "show", str(kept.pk), user="researcher").stdout
    assert weir("request", "withdraw", str(kept.pk), user="researcher").exit_code == 0
    kept.refresh_from_db()
    assert kept.state == "withdrawn"


def test_decision_without_a_note_is_not_understood(weir, cluster):
    assert weir("request", "approve", "1", user="admin").exit_code == 2


def test_what_if_of_the_live_cluster_answers_at_once(weir, kube, tmp_path):
    file = tmp_path / "changes.yaml"
    file.write_text("- {kind: quota, queue: pretraining, gpu_class: h100-80gb, nominal_gpus: 4}\n")
    done = weir("study", "what-if", "-f", str(file), "--now", user="admin")
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(done.stdout)["state"] == "done"


@pytest.mark.parametrize("name", REPORTS)
def test_report_names_its_tables_and_shows_one(weir, cluster, name):
    done = weir("report", name, user="admin")
    assert done.exit_code == 0, done.output
    table = done.stdout.rpartition("shows one of: ")[2].split(", ")[0].strip()
    assert weir("report", name, "--table", table, user="admin").exit_code == 0


def test_report_of_costs_writes_focus_as_csv(weir, cluster):
    done = weir("report", "showback", "--table", "focus", "--csv", user="admin")
    assert done.exit_code == 0, done.output
    assert done.stdout == "", "nothing was held there"
    assert "name it by --table" in weir("report", "showback", "--csv", user="admin").output


def test_table_is_written_as_csv_and_no_cell_is_a_formula(capsys):
    _write([{"queue": "=1+1", "cost": -2.5}, {"queue": "a,b", "cost": None}])

    assert list(csv.reader(capsys.readouterr().out.splitlines())) == [
        ["queue", "cost"], ["'=1+1", "-2.5"], ["a,b", ""],
    ]  # fmt: skip


def test_report_shows_its_figures_in_the_units_of_people(weir, cluster):
    lines = weir("report", "utilization", user="admin").stdout.splitlines()
    shown = dict(line.split("  ", 1) for line in lines if "  " in line)
    assert shown["step"].strip().endswith(("h", "min"))
    assert "T" not in shown["filters, from"]


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("p90_s", 14035.4, "3 h 53 min"), ("lost_share_of_allocated", 0.023, "2.3 %"),
        ("jain", 0.974, "0.97"), ("gpu_hours", 71220.2, "71,220.2"), ("count", 6087, "6,087"),
        ("p50_s", None, None), ("in_vain", "", ""), ("day", "2026-12-01", "2026-12-01"),
    ],
)  # fmt: skip
def test_figure_of_a_report_stands_in_its_unit(field, value, shown):
    assert _shown(field, value) == shown


def test_report_without_a_name_lists_what_there_is(weir, cluster):
    assert set(REPORTS) <= set(weir("report", user="admin").stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_that_of_the_shell(weir, shell):
    assert "_WEIR_COMPLETE" in weir("completion", shell).stdout


def test_every_command_has_a_help(weir):
    from weir.cli import main

    for name, command in main.commands.items():
        assert command.help, name
        assert weir(name, "--help").exit_code == 0


def test_change_says_both_starts_and_is_written_unless_dry(weir, kube, cluster):
    weir(*JOB, user="researcher")
    made = kube.get(job("pretraining", "probe"))["metadata"]["uid"]
    make_workload(cluster.queues.get(name="pretraining"), uid=made, name="probe", user="researcher")
    words = ("change", "probe", "--limit", "1800", "--not-before", "2999-01-01T00:00:00Z")

    tried = weir(*words, "--dry-run", user="researcher")
    assert (tried.exit_code, "no sooner than" in tried.stdout) == (0, True), tried.output
    assert "Nothing is saved." in tried.stdout
    assert kube.get(job("pretraining", "probe"))["spec"]["activeDeadlineSeconds"] == 3600

    assert weir(*words, user="researcher").exit_code == 0
    assert kube.get(job("pretraining", "probe"))["spec"]["activeDeadlineSeconds"] == 1800


def test_array_is_submitted_by_one_command(weir, kube, cluster):
    done = weir(*JOB, "--array", "2", "--at-once", "1", "--env", "SEED=1", user="researcher")
    assert "1 more members of its array are submitted" in done.stdout, done.output
    notes = kube.get(job("pretraining", "probe-1"))["metadata"]["annotations"]
    assert notes["weir.dev/array-at-once"] == "1"


def test_change_of_nothing_is_not_understood(weir, cluster):
    assert weir("change", "anything", user="researcher").exit_code == 2
