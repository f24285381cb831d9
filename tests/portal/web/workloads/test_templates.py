"""Templates of the submit form: kept from what is typed, used by their owner and by the owner's team."""

import pytest

from portal.teams.models import SubmitTemplate
from tests.portal.web.workloads.test_submit import FORM, SUBMIT

pytestmark = pytest.mark.django_db
KEEP = "/c/fra1/submit/templates/"


def keep(client, **change):
    return client.post(KEEP, {**FORM, "template_name": "finetune", **change})


def test_template_gives_every_field_but_the_name(as_user, cluster):
    client = as_user("researcher")
    url = keep(client, env="SEED=1", image="half done").headers["Location"]
    form = client.get(url).context["form"]
    want = {**FORM, "env": "SEED=1", "image": "half done"}
    del want["name"]
    assert {name: form[name].value() for name in want} == want
    assert form["name"].value() is None


def test_template_of_the_same_name_is_replaced(as_user, cluster):
    client = as_user("researcher")
    keep(client)
    keep(client, gpus_per_pod="2")
    [kept] = SubmitTemplate.objects.all()
    assert kept.values["gpus_per_pod"] == "2"


def used_by(as_user, name, template):
    form = as_user(name).get(f"{SUBMIT}?template={template.pk}").context["form"]
    return form["image"].value() == FORM["image"]


def test_own_template_is_nobody_elses(as_user, cluster):
    keep(as_user("researcher"))
    template = SubmitTemplate.objects.get()
    assert used_by(as_user, "researcher", template)
    assert not used_by(as_user, "m.okafor", template)


def test_template_of_a_team_is_used_by_its_members_and_nobody_outside(as_user, cluster):
    keep(as_user("researcher"), template_team="pretraining")
    template = SubmitTemplate.objects.get()
    assert template.team.name == "pretraining"
    assert used_by(as_user, "m.okafor", template)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"template_name": " "}, "needs a name"),
        ({"template_name": "x" * 64}, "up to 63"),
        ({"template_team": "search"}, "in no such team"),
    ],
)
def test_refused_template_says_why_and_keeps_what_was_typed(as_user, cluster, change, says):
    response = keep(as_user("researcher"), **change)
    assert response.status_code == 422
    assert says in response.content.decode()
    assert response.context["form"]["image"].value() == FORM["image"]
    assert not SubmitTemplate.objects.exists()


def test_only_its_owner_deletes_a_template(as_user, cluster):
    keep(as_user("researcher"), template_team="pretraining")
    url = f"{KEEP}{SubmitTemplate.objects.get().pk}/delete/"
    assert as_user("m.okafor").post(url).status_code == 404
    assert as_user("researcher").get(url).status_code == 405
    assert as_user("researcher").post(url).status_code == 302
    assert not SubmitTemplate.objects.exists()
