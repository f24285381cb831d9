import json
from datetime import timedelta

import pytest

from scheduling.engine import document, plan
from scheduling.models import Cycle, CycleRecord, Decision, Queue, Workload
from tests.factories import make_workload

pytestmark = pytest.mark.django_db
URL = "/c/fra1/cycles/48213/"


def text(response):
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_decisions_stand_with_their_reasons(as_user, passed):
    page = text(as_user("lead").get(URL))
    assert "pretraining-run-4" in page
    assert "pretraining held 32 h100-80gb" in page
    assert "RECLAIMED" in page
    assert "8 GPU-hours of work that you see were lost." in page


def test_queues_stand_before_and_after_with_what_is_on_its_way(as_user, passed):
    sides = as_user("admin").get(URL).context["seen"].sides
    told = [(s.queue.name, s.before.allocated, s.change, s.after.allocated) for s in sides]
    assert told == [("pretraining", 32000, -8000, 24000), ("alignment", 0, 8000, 8000)]


def test_phases_follow_each_other_and_add_up(as_user, passed):
    seen = as_user("admin").get(URL).context["seen"]
    assert [phase.x for phase in seen.phases] == ["0.00%", "27.06%", "80.48%"]
    assert seen.phases_ms == pytest.approx(225.4)


def test_work_of_other_teams_is_counted_and_not_named(as_user, passed):
    page = text(as_user("p.rossi").get(URL))
    assert "pretraining" not in page
    assert "alignment" not in page
    assert "1 decision is about work of other teams." in page


def test_who_could_have_left_has_each_who_stayed_with_the_rule_that_spared_it(as_user, passed):
    page = as_user("admin").get(f"{URL}candidates/", headers={"hx-request": "true"})
    [search] = page.context["searches"]
    assert [(row.name, row.label) for row in search.rows] == [
        ("pretraining-run-4", "Chosen"),
        ("pretraining-run-2", "Would have done"),
        ("pretraining-run-3", "Would have done"),
        ("pretraining-run-1", "Not preemptible"),
    ]
    assert "would have lost 24 GPU-hours" in text(page)


def test_who_could_have_left_names_nobody_of_a_queue_out_of_sight(as_user, passed):
    page = text(as_user("p.rossi").get(f"{URL}candidates/"))
    assert "pretraining" not in page
    assert "Nothing that you may see" in page
    seen = text(as_user("m.okafor").get(f"{URL}candidates/"))
    assert "of <b>a workload of another team</b>" in seen


def test_snapshot_is_downloaded_and_gives_the_same_plan(as_user, passed):
    answer = as_user("admin").get(f"{URL}snapshot")
    assert answer["Content-Disposition"] == 'attachment; filename="cycle-48213.json"'
    again = plan(document.parse(json.loads(answer.content)))
    left = [d.workload for d in again.decisions if d.action == "evict"]
    work = Workload.objects.get(name="pretraining-run-4")
    assert left == [f"{work.namespace}/pretraining-run-4"]
    assert f"explain cycle-48213.json \\\n  {left[0]}" in as_user("admin").get(URL).content.decode()


@pytest.mark.parametrize("name", ["lead", "p.rossi"])
def test_snapshot_is_absent_for_who_does_not_see_all_work(as_user, passed, name):
    assert as_user(name).get(f"{URL}snapshot").status_code == 404
    assert "so operators download it" in text(as_user(name).get(URL))


def test_cycle_without_a_record_says_what_is_kept(as_user, passed):
    CycleRecord.objects.all().delete()
    assert "No snapshot of this cycle is kept." in text(as_user("admin").get(URL))


def test_cycle_that_changed_nothing_says_so_and_one_to_come_is_absent(as_user, passed):
    client = as_user("lead")
    assert "This cycle changed nothing" in text(client.get("/c/fra1/cycles/48212/"))
    assert client.get("/c/fra1/cycles/48214/").status_code == 404


@pytest.mark.parametrize("where", ["/c/fra1/", "/c/fra1/queues/alignment/"])
def test_cycles_are_named_with_a_link_to_their_page(as_user, passed, where):
    assert f'href="{URL}"' in text(as_user("admin").get(where))


def test_what_had_changed_and_what_was_written_stand_on_the_page(as_user, passed):
    page = text(as_user("admin").get(URL))
    assert "pretraining-run-4</a> was edited" in page
    assert 'href="/c/fra1/nodes/h100-01/">h100-01</a> takes no more work' in page
    assert "The quotas changed" in page
    assert "Refused 422" in page
    assert "Job pretraining-run-4 is invalid." in page
    assert "1 waiting workload was told why on its object." in page


def test_changes_and_writes_of_other_teams_are_counted_and_not_named(as_user, passed):
    page = text(as_user("p.rossi").get(URL))
    assert "1 change is about work of other teams." in page
    assert "1 write is about work of other teams." in page
    assert "run-4" not in page


def test_write_that_was_not_needed_says_so(as_user, passed):
    record = CycleRecord.objects.get()
    record.writes = [{**record.writes[0], "method": "", "code": 0, "message": ""}]
    record.save()
    assert "no longer needed" in text(as_user("admin").get(URL))


def test_cycle_that_nothing_led_to_says_that_time_did(as_user, passed):
    CycleRecord.objects.update(causes=[])
    assert "Time alone may start work" in text(as_user("admin").get(URL))


def test_page_says_how_long_after_the_first_change_it_planned_and_wrote(as_user, passed):
    record = CycleRecord.objects.select_related("cycle").get()
    Cycle.objects.filter(pk=record.cycle_id).update(took_ms=400)
    first = record.cycle.at - timedelta(seconds=3)
    record.causes = [{"what": "policy", "at": first.isoformat(), "name": "quotas"}]
    record.phases = [["Write to the cluster", 200.0]]
    record.save()
    page = text(as_user("admin").get(URL))
    assert "3.0 s after the first of them; its plan was committed after 3.4 s" in page
    assert "its writes were done after 3.6 s" in page


def test_finding_names_the_queues_that_gave_and_got(as_user, passed):
    page = text(as_user("admin").get(URL))
    assert "Room was made for alignment: pretraining gives up 8 h100-80gb." in page
    assert "It started nothing." in page


def test_finding_names_no_queue_whose_work_the_reader_does_not_see(as_user, passed):
    mine = text(as_user("m.okafor").get(URL))
    assert "Room was made for other queues: pretraining gives up 8 h100-80gb." in mine
    assert "It took GPUs back from 1 workload." in text(as_user("p.rossi").get(URL))


def test_finding_names_the_queues_that_started_most_and_counts_the_rest(as_user, passed):
    started = [("vision", 3), ("search", 2), ("ci", 1), ("inference", 1)]
    for name, many in started:
        queue = Queue.objects.get(name=name)
        for _ in range(many):
            work = make_workload(queue, gpus=1000)
            Decision.objects.create(
                cycle=passed, workload=work, action="admit", reason="fits_nominal", sealed={}
            )
    Cycle.objects.filter(pk=passed.pk).update(admitted=8)
    page = text(as_user("admin").get(URL))
    assert "It started 8 workloads: 3 in vision, 2 in search, 1 in" in page
    assert "and 2 in other queues." in page
