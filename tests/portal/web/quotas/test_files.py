"""The figures of a subtree as a file: out of the page, and into its grid again."""

import pytest
import yaml

from scheduling.models import QuotaChange

pytestmark = pytest.mark.django_db
PAGE = "/c/fra1/quotas/research/"


def exported(client):
    return client.get(f"{PAGE}?file=1")


def filled(client, change=lambda queues: None):
    """The page once the exported file was changed and filled in."""
    queues = yaml.safe_load(exported(client).content)["queues"]
    change({queue["name"]: queue for queue in queues})
    return client.post(PAGE, {"tree": yaml.safe_dump({"queues": queues})})


def test_export_has_the_figures_in_force_of_the_subtree_alone(as_user, cluster):
    response = exported(as_user("lead"))
    assert "research.yaml" in response.headers["Content-Disposition"]
    queues = {one["name"]: one for one in yaml.safe_load(response.content)["queues"]}
    below = cluster.queues.filter(parent__name="research").values_list("name", flat=True)
    assert queues.keys() == set(below)
    assert queues["language"]["nominal"]["h100-80gb"] > 0


def test_whole_figures_of_an_export_are_written_as_whole_numbers(as_user, cluster):
    assert ".0\n" not in exported(as_user("lead")).content.decode()


def test_file_that_says_what_is_in_force_changes_nothing_and_says_so(as_user, cluster):
    page = filled(as_user("lead"))
    assert page.status_code == 200
    assert "nothing differs" in page.content.decode()


def test_what_differs_stands_in_the_grid_and_is_not_saved(as_user, cluster):
    def lower(queues):
        queues["language"]["nominal"]["h100-80gb"] -= 1

    before = QuotaChange.objects.count()
    page = filled(as_user("lead"), lower)
    [cell] = page.context["typed"].cells
    assert (cell.queue, cell.gpu_class) == ("language", "h100-80gb")
    assert "Typed in from the file, and not saved yet." in page.content.decode()
    assert QuotaChange.objects.count() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queues: [", ": found broken syntax ("),
        ("queues: [", "), expected YAML or JSON; mend the syntax there."),
        ("queues:\n  - name: elsewhere\n", "has no queue elsewhere right below it"),
        ("queues:\n  - name: language\n    nominal: {h900: 1}\n", "h900"),
    ],
)
def test_file_that_cannot_be_used_is_refused_at_its_field_and_kept(as_user, cluster, text, said):
    page = as_user("lead").post(PAGE, {"tree": text})
    assert page.status_code == 400
    fault = page.context["by_field"]["tree"]
    assert said in fault.sentence
    assert page.context["file"] == text


def test_who_does_not_divide_it_has_no_file(as_user, cluster):
    client = as_user("researcher")
    assert "application/yaml" not in exported(client).headers.get("Content-Type", "")
    assert client.post(PAGE, {"tree": "queues: []"}).status_code == 404
