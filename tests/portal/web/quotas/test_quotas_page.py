"""The grid by plain GET and POST, as it works without JavaScript."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.utils.html import escape

from portal.accounts.models import User
from scheduling.models import Cluster, Queue, Quota, QuotaChange
from scheduling.services.queues.save import Field, QuotaCell, save_quotas
from tests.factories import NOW, example_cluster, make_member
from workshop.demo.organisation import A100, H100, L4

pytestmark = pytest.mark.django_db
URL = "/c/fra1/quotas/research/"


@pytest.fixture
def cluster(monkeypatch):
    """The example organisation at NOW; ``cluster.tick(days=1)`` moves its clock."""
    cluster = example_cluster()
    clock = [NOW]
    monkeypatch.setattr(Cluster, "now", lambda self: clock[0])
    cluster.tick = lambda **delta: clock.__setitem__(0, clock[0] + timedelta(**delta))
    return cluster


@pytest.fixture
def lead(cluster, client):
    client.force_login(User.objects.get(username="lead"))
    return client


@pytest.fixture
def name(cluster):
    """Name of the input of a cell."""
    classes = {c.name: c.pk for c in cluster.gpu_classes.all()}

    def find(queue, gpu_class=H100, field="nominal"):
        return f"cell-{cluster.queues.get(name=queue).pk}-{classes[gpu_class]}-{field}"

    return find


def form(page) -> dict[str, str]:
    """Every input of the page's form, as a browser would send it back."""
    html = page.content.decode()
    found = dict(re.findall(r'<input form="quotas-form" name="([^"]+)" value="([^"]*)"', html))
    hidden = re.findall(r'<input type="hidden" name="(version|shown)" value="([^"]*)"', html)
    return {**found, **dict(hidden), "reason": "Because"}


def post(client, edits, url=URL, **fields):
    return client.post(url, {**form(client.get(url)), **edits, **fields})


def nominal(queue, gpu_class=H100, at=NOW):
    rows = Quota.objects.filter(queue__name=queue, gpu_class__name=gpu_class)
    return rows.in_force(at).get().nominal_gpus / 1000


def test_grid_shows_the_subtree_and_what_the_top_was_given(lead):
    page = lead.get(URL).content.decode()

    assert "Quotas of research" in page
    assert re.findall(r'data-name="([a-z]+)" data-parent', page) == [
        "research", "language", "pretraining", "alignment", "vision", "speech", "robotics",
    ]  # fmt: skip
    assert "<b>36 of 36</b>" in page.replace(" data-of", "")
    assert "products" not in page


def test_save_changes_what_was_edited_and_nothing_else(lead, name):
    answer = post(lead, {name("vision"): "8", name("speech"): "16"})

    assert answer.headers["Location"] == URL
    assert (nominal("vision"), nominal("speech"), nominal("robotics")) == (8, 16, 4)
    change = QuotaChange.objects.get()
    assert (len(change.cells), change.author.username) == (2, "lead")
    assert "Saved 2 edits, in force with the next cycle." in lead.get(URL).content.decode()


@pytest.mark.parametrize(("field", "figure", "said"), [
    ("nominal", "8", True), ("borrowing_limit", "4", True), ("borrowing_limit", "all", False),
    ("weight", "1.5", False),
])  # fmt: skip
def test_save_says_until_when_what_it_lowers_evicts_nobody(lead, name, field, figure, said):
    Cluster.objects.update(lowering_grace_s=5400)
    post(lead, {name("vision", field=field): figure})
    page = lead.get(URL).content.decode()
    assert "Saved 1 edit, in force with the next cycle." in page
    assert ("What it lowers evicts nobody before 12:12." in page) == said


def test_conflict_is_told_at_the_cell_in_the_sum_and_in_a_sentence(lead, name):
    answer = post(lead, {name("alignment", A100): "4"}, reason="Two nodes")
    page = answer.content.decode()

    assert answer.status_code == 400
    assert nominal("alignment", A100) == 2
    assert f'name="{name("alignment", A100)}" value="4"' in page
    assert page.count('aria-invalid="true"') == 1
    assert "6 of 4" in page
    assert "2 too many" in page
    assert escape("Lower pretraining by 2, or raise language by 2 from vision, speech") in page
    assert "Two nodes</textarea>" in page
    assert "1 error to fix first" in page


@pytest.mark.parametrize(
    ("text", "said"), [("-1", "is below zero"), ("many", "is not a figure"), ("", "needs a number")]
)
def test_bad_figure_is_told_at_the_field_and_stays_typed(lead, name, text, said):
    page = post(lead, {name("vision"): text}).content.decode()

    assert f'name="{name("vision")}" value="{text}"' in page
    assert said in page
    assert "was 16" in page
    assert QuotaChange.objects.count() == 0


def test_typed_text_is_escaped(lead, name):
    page = post(lead, {name("vision"): '"><script>x'}, reason="</textarea><script>y")

    assert b"<script>x" not in page.content
    assert b"<script>y" not in page.content


def test_fault_in_a_hidden_class_opens_it(lead, name):
    page = post(lead, {name("vision", L4): "-2"}, url=f"{URL}?class={H100}")

    shown = {c.gpu_class.name: c.shown for c in page.context["table"].columns}
    assert shown[H100]
    assert shown[L4]
    assert not shown[A100]


def test_limits_take_all_and_figures(lead, name):
    post(
        lead, {name("vision", field="borrowing_limit"): "all", name("vision", L4, "weight"): "2.5"}
    )

    row = Quota.objects.in_force(NOW).get(queue__name="vision", gpu_class__name=H100)
    assert row.borrowing_limit_gpus is None


def test_reason_is_required_at_its_field(lead, name):
    page = post(lead, {name("vision"): "8"}, reason=" ").content.decode()

    assert 'id="reason-error"' in page


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("effective_until", "2020-01-01T00:00", "before it begins"),
        ("effective_from", "2020-01-01T00:00", "has passed"),
        ("effective_from", "tomorrow", "is not a time"),
        ("effective_until", "2026-02-31T00:00", "is not a time"),
    ],
)
def test_bad_range_is_told_at_the_field_and_stays_typed(lead, name, field, text, said):
    page = post(lead, {name("vision"): "8"}, **{field: text}).content.decode()

    assert said in page
    assert f'name="{field}" type="datetime-local" value="{text}"' in page


def test_range_is_read_in_the_time_of_the_page(lead, name):
    post(lead, {name("vision"): "8"}, effective_until="2026-12-31T18:00")

    assert f"{QuotaChange.objects.get().effective_until:%F %R}" == "2026-12-31 17:00"


def test_save_after_somebody_else_saved_is_refused_and_keeps_the_edits(lead, cluster, name):
    stale = form(lead.get(URL))
    cluster.tick(minutes=1)
    research = cluster.queues.get(name="research")
    cell = QuotaCell("speech", H100, Field.NOMINAL, Decimal(6))
    save_quotas(queue=research, cells=[cell], author=None, reason="Meanwhile")

    answer = lead.post(URL, {**stale, name("vision"): "8"})
    page = answer.content.decode()

    assert answer.status_code == 400
    assert "while you were editing" in page
    assert "<b>these edits:</b>" in page
    assert "version:" not in page
    assert f'name="{name("vision")}" value="8"' in page
    assert f'name="{name("speech")}" value="6"' in page
    assert lead.post(URL, {**form(answer), name("vision"): "8"}).status_code == 302
    later = cluster.now()
    assert (nominal("vision", at=later), nominal("speech", at=later)) == (8, 6)


def test_untouched_cells_leave_a_planned_change_alone(lead, cluster, name):
    later = NOW + timedelta(days=3)
    research = cluster.queues.get(name="research")
    cell = QuotaCell("speech", H100, Field.NOMINAL, Decimal(6))
    save_quotas(queue=research, cells=[cell], author=None, reason="Plan", effective_from=later)

    post(lead, {name("vision"): "8"}, effective_from="2026-11-25T00:00")

    row = Quota.objects.filter(queue__name="speech", gpu_class__name=H100).in_force(later).get()
    assert row.nominal_gpus == 6_000


def test_cells_of_queues_outside_are_not_even_read(lead, name):
    answer = post(lead, {name("search"): "1", name("research"): "1", name("vision"): "8"})

    assert answer.status_code == 302
    assert (nominal("search"), nominal("research")) == (12, 64)


def test_history_shows_before_and_after_and_reverts(lead, name):
    post(lead, {name("vision"): "8", name("speech"): "16"}, reason="Corpus")
    page = lead.get(URL).content.decode()
    assert escape("vision 16 → 8, speech 8 → 16") in page

    url = f"{URL}changes/{QuotaChange.objects.get().pk}/revert/"
    assert escape("vision 8 → 16, speech 16 → 8") in lead.get(url).content.decode()
    assert nominal("vision") == 8
    assert lead.post(url, {"reason": "Undo"}).status_code == 302
    assert nominal("vision") == 16


def test_page_as_of_a_day_shows_what_held_then_and_saves_nothing(lead, name, cluster):
    before = cluster.now().isoformat()
    cluster.tick(days=1)
    post(lead, {name("vision"): "8"})
    cluster.tick(days=1)

    then = lead.get(URL, {"at": before})

    rows = {row.queue.name: row for row in then.context["table"].rows if not row.children}
    assert "quotas-form" not in then.content.decode()
    assert "Show those of now" in then.content.decode()
    assert [cell.text for cell in rows["vision"].groups[0].cells][:1] == ["16"]
    assert nominal("vision", at=cluster.now()) == 8


def test_change_leads_to_the_quotas_as_of_then(lead, name):
    post(lead, {name("vision"): "8"}, effective_from="2026-11-25T00:00")

    address = re.search(r'href="([^"]+)">As of then', lead.get(URL).content.decode())

    assert address is not None
    assert "The quotas in force at" in lead.get(unescape(address[1])).content.decode()


def test_what_is_no_time_is_told_beside_the_quotas_of_now(lead):
    page = lead.get(URL, {"at": "yesterday"})

    assert page.status_code == 400
    assert "“yesterday”: It is no time. Write one such as" in page.content.decode()
    assert "quotas-form" in page.content.decode()


def test_revert_without_reason_is_refused(lead, name):
    post(lead, {name("vision"): "8"})
    url = f"{URL}changes/{QuotaChange.objects.get().pk}/revert/"

    answer = lead.post(url, {"reason": " "})

    assert answer.status_code == 400
    assert "Write why this changes." in answer.content.decode()


def test_lead_cannot_revert_what_was_set_from_above(lead, cluster):
    root = cluster.queues.get(parent=None)
    cell = QuotaCell("research", H100, Field.NOMINAL, Decimal(70))
    change = save_quotas(queue=root, cells=[cell], author=None, reason="Less")

    assert "Less" in lead.get(URL).content.decode()
    assert lead.post(f"{URL}changes/{change.pk}/revert/", {"reason": "x"}).status_code == 404


def test_member_who_may_not_edit_reads(cluster, client):
    client.force_login(make_member(cluster.queues.get(name="research"), may_submit=True))

    page = client.get(URL).content.decode()

    assert "You may read this, not change it." in page
    assert "quotas-form" not in page
    assert client.post(URL, {"reason": "x"}).status_code == 404


def test_lead_of_a_leaf_is_told_to_add_a_queue_not_that_reading_is_all(lead):
    page = lead.get("/c/fra1/quotas/vision/").content.decode()

    assert "You may read this, not change it." not in page
    assert "Add one to divide what it was given." in page


def test_member_below_sees_neither_siblings_nor_a_sum_that_tells_of_them(cluster, client):
    client.force_login(make_member(cluster.queues.get(name="pretraining"), may_submit=True))

    page = client.get("/c/fra1/quotas/language/").content.decode()

    assert "pretraining" in page
    assert "alignment" not in page
    assert "Sum of" not in page


def test_index_leads_to_what_the_person_divides(lead, cluster, client):
    assert lead.get("/c/fra1/quotas/").headers["Location"] == URL
    client.force_login(User.objects.get(username="admin"))
    assert client.get("/c/fra1/quotas/").headers["Location"] == "/c/fra1/quotas/fra1/"


def test_operator_divides_what_is_installed_and_may_oversubscribe(cluster, client, name):
    client.force_login(User.objects.get(username="admin"))
    url = "/c/fra1/quotas/fra1/"
    page = client.get(url).content.decode()
    assert "installed" in page
    assert "120 of 128" in page

    post(client, {name("research"): "90"}, url=url)

    assert nominal("research") == 90
    assert "18 over" in client.get(url).content.decode()


def test_page_costs_the_same_queries_for_any_tree(lead, cluster, django_assert_max_num_queries):
    parent = cluster.queues.get(name="products")
    for number in range(5):
        Queue.objects.create(cluster=cluster, parent=parent, name=f"new-{number}")
    client = lead
    client.force_login(User.objects.get(username="admin"))
    for queue in ("language", "fra1"):
        with django_assert_max_num_queries(37):
            client.get(f"/c/fra1/quotas/{queue}/")
