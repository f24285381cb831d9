"""Sign-in through a provider that speaks SAML: whom a signed answer brings in, which answers do nothing."""

import base64
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from portal.accounts.models import Persona, Session, User
from portal.teams import directory, provisioning
from portal.teams.models import Membership, Team
from scheduling.models import Queue
from tests.factories import make_cluster, make_user
from tests.provider import saml as provider
from tests.provider.saml import ADDRESS, ENTITY, Answer, Keys, question_in, settings_of

pytestmark = pytest.mark.django_db

GROUPS = "http://schemas.example.org/groups"
HADDAD = {"uid": ["i.haddad"], "givenName": ["Ines"], "sn": ["Haddad"]}


@pytest.fixture(scope="module")
def keys() -> Keys:
    return provider.keys()


@pytest.fixture
def sso(settings, keys):
    settings.SOCIALACCOUNT_PROVIDERS = settings_of(
        WEIR_SAML_ENTITY_ID=ENTITY, WEIR_SAML_ADDRESS=ADDRESS, WEIR_SAML_NAME="Example SSO",
        WEIR_SAML_CERTIFICATE=keys.certificate,
    )  # fmt: skip
    settings.WEIR_SAML_USER_ATTRIBUTE, settings.WEIR_SAML_GROUPS_ATTRIBUTE = "uid", GROUPS
    settings.ALLOWED_HOSTS = ["weir.example.org"]
    return keys


def browser() -> Client:
    return Client(SERVER_NAME="weir.example.org", headers={"x-forwarded-proto": "https"})


def get(client: Client, path: str):
    return client.get(path, secure=True)


def ask(client: Client, **fields: str):
    """Weir's question at the provider."""
    page = client.post("/sign-in/provider/", fields, secure=True)
    assert page.status_code == 200, page.content
    assert page.context["address"].startswith(ADDRESS)
    return question_in(page.context["address"])


def bring(client: Client, form: dict[str, str]):
    """The browser posts the provider's form and follows: what Weir says in the end."""
    kept = client.post("/sign-in/saml/answer/", form, secure=True)
    assert kept.status_code == 302, kept.content
    return get(client, kept.headers["Location"])


def come(client: Client, keys: Keys, said=HADDAD, person: str = "k-1", **fields: str):
    question = ask(client, **fields)
    return bring(client, Answer(question.attrib["ID"], person, said).form(keys))


def teams_of(name: str) -> dict[str, str]:
    rows = Membership.objects.filter(user__username=name).select_related("team", "persona")
    return {row.team.name: row.persona.name for row in rows}


@pytest.fixture
def research() -> Team:
    root = Queue.objects.create(cluster=make_cluster(), name="fra1")
    queue = Queue.objects.create(cluster=root.cluster, parent=root, name="research")
    return Team.objects.create(name="research", queue=queue)


def test_signed_answer_makes_an_account_and_a_session(sso):
    client = browser()
    assert "Sign in with Example SSO" in get(client, "/sign-in/").content.decode()

    answer = come(client, sso, next="/account/")

    assert answer.headers["Location"] == "/account/"
    user = User.objects.get()
    assert (user.username, user.first_name, user.last_name) == ("i.haddad", "Ines", "Haddad")
    assert user.email == "someone@example.org"
    assert not user.has_usable_password()
    assert SocialAccount.objects.get().provider == ENTITY
    assert Session.objects.get(user=user).how == "single sign-on"
    assert get(client, "/account/").status_code == 200


def test_same_key_is_the_same_account_whatever_the_name_is_by_then(sso):
    come(browser(), sso)
    come(browser(), sso, {**HADDAD, "uid": ["i.haddad-weiss"]})

    assert [user.username for user in User.objects.all()] == ["i.haddad"]


def test_name_is_the_key_where_no_attribute_is_named(sso, settings):
    settings.WEIR_SAML_USER_ATTRIBUTE = ""
    come(browser(), sso, {}, person="i.haddad@example.org")

    assert User.objects.get().username == "i.haddad@example.org"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({}, "says no name of yours ('uid')"),
        ({"uid": ["i.haddad", "root"]}, "says no name of yours ('uid')"),
        ({"uid": ["weir:lead"]}, "has characters"),
        ({"uid": ["svc-trainer"]}, "begins as those of programs do"),
    ],
)
def test_person_without_a_name_that_can_be_kept_is_told_why(sso, said, sentence):
    answer = come(browser(), sso, said)

    assert answer.status_code == 403
    assert sentence in answer.content.decode().replace("&#x27;", "'")
    assert not User.objects.exists()


def test_account_with_a_password_is_not_taken_over_by_its_name(sso):
    owner = make_user("i.haddad")
    owner.set_password("correct horse battery")
    owner.save()

    answer = come(browser(), sso)

    assert answer.status_code == 403
    assert "is an account i.haddad here already" in answer.content.decode()
    assert not SocialAccount.objects.exists()


REFUSED = {
    "nothing is signed": ({}, "nobody", "No Signature found"),
    "another key signed it": ({}, "another", "Signature validation failed"),
    "it has run out": (
        {"begins": timedelta(hours=-2), "ends": timedelta(hours=-1)}, "sso", "timestamp: expired",
    ),
    "it begins in an hour": (
        {"begins": timedelta(hours=1), "ends": timedelta(hours=2)}, "sso", "not yet valid",
    ),
    "it is for another program": (
        {"audience": "https://wiki.example.org/"}, "sso", "is not a valid audience",
    ),
    "it goes to another address": (
        {"destination": "https://wiki.example.org/saml"}, "sso", "The response was received at",
    ),
    "another provider says it": (
        {"issuer": "https://elsewhere.example.org"}, "sso", "Invalid issuer",
    ),
    "it answers no question": ({"question": "ONELOGIN_0"}, "sso", "no_question"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_answer_that_proves_nothing_signs_nobody_in(sso, case, caplog):
    client, (changed, by, why) = browser(), REFUSED[case]
    signed_by = {"sso": sso, "nobody": None, "another": provider.keys()}[by]
    honest = Answer(ask(client).attrib["ID"], "k-1", HADDAD)

    answer = bring(client, replace(honest, **changed).form(signed_by))

    assert answer.status_code == 403
    assert "Example SSO gave no answer that counts" in answer.content.decode()
    assert not User.objects.exists()
    (line,) = [json.loads(r.message) for r in caplog.records if r.name == "weir.security"]
    assert (line["event"], line["by"]) == ("sign_in.failed", "saml")
    assert why in line["why"]


def test_signed_answer_with_a_word_changed_signs_nobody_in(sso):
    client = browser()
    form = Answer(ask(client).attrib["ID"], "k-1", HADDAD).form(sso)
    changed = base64.b64decode(form["SAMLResponse"]).replace(b"i.haddad", b"m.chief")

    answer = bring(client, {"SAMLResponse": base64.b64encode(changed).decode()})

    assert answer.status_code == 403
    assert not User.objects.exists()


@pytest.mark.parametrize("where", ["the same browser", "another browser"])
def test_answer_is_good_once(sso, where):
    client = browser()
    form = Answer(ask(client).attrib["ID"], "k-1", HADDAD).form(sso)
    bring(client, form)
    client.post("/sign-out/", secure=True)

    again = bring(client if where == "the same browser" else browser(), form)

    assert again.status_code == 403
    assert not Session.objects.exclude(user=None).exists()


@pytest.mark.parametrize("sent", [{}, {"SAMLResponse": ""}, {"SAMLResponse": "x" * 300_000}])
def test_form_without_an_answer_is_kept_nowhere(sso, sent):
    answer = browser().post("/sign-in/saml/answer/", sent, secure=True)

    assert answer.status_code == 400
    assert not Session.objects.exists()


@pytest.mark.parametrize(
    "sent", [b"hello", b"<a></a>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b"\xff\x00", None]
)
def test_answer_that_is_no_saml_is_refused_as_any_other(sso, sent):
    client = browser()
    ask(client)
    text = "not base64!" if sent is None else base64.b64encode(sent).decode()

    assert bring(client, {"SAMLResponse": text}).status_code == 403


def test_inactive_person_is_not_let_in(sso):
    client = browser()
    come(browser(), sso)
    User.objects.update(is_active=False)

    assert come(client, sso).headers["Location"] == "/sign-in/"
    assert get(client, "/account/").status_code == 302


def test_deactivated_person_loses_the_session_at_once(sso):
    client = browser()
    make_user("root-admin", is_superuser=True)
    come(client, sso)

    provisioning.set_active(None, User.objects.get(username="i.haddad"), False, None)

    assert get(client, "/account/").status_code == 302


def test_groups_give_and_take_memberships_at_each_sign_in(sso, research):
    persona, _ = Persona.objects.get_or_create(name="researcher")
    admin = make_user("root-admin", is_superuser=True)
    directory.add_rule(
        admin, group="gpu-research", team=research, persona=persona, order=1, request=None
    )
    come(browser(), sso, {**HADDAD, GROUPS: ["everybody", "gpu-research"]})
    assert teams_of("i.haddad") == {"research": "researcher"}

    come(browser(), sso)  # It says nothing of groups.
    assert teams_of("i.haddad") == {"research": "researcher"}

    come(browser(), sso, {**HADDAD, GROUPS: ["everybody"]})
    assert teams_of("i.haddad") == {}


def test_who_is_to_prove_who_they_are_signs_in_there_anew(sso, time_machine_at):
    client = browser()
    assert "ForceAuthn" not in ask(client).attrib
    come(client, sso)
    time_machine_at(timedelta(minutes=16))
    asked = client.post("/account/tokens/", {"name": "nightly", "days": "30"}, secure=True)
    assert asked.headers["Location"] == "/account/confirm/provider/?next=%2Faccount%2Fgo-on%2F"

    question = ask(client, next="/account/go-on/")

    assert question.attrib["ForceAuthn"] == "true"
    form = Answer(question.attrib["ID"], "k-1", HADDAD).form(sso)
    assert bring(client, form).headers["Location"] == "/account/go-on/"
    assert "nightly" in get(client, "/account/go-on/").content.decode()


def test_metadata_says_where_answers_go_and_no_way_to_sign_out_by_address(sso):
    told = get(browser(), "/sign-in/saml/metadata/")

    assert told.headers["Content-Type"] == "application/samlmetadata+xml"
    body = told.content.decode()
    assert f'entityID="{provider.AUDIENCE}"' in body
    assert f'Location="{provider.ANSWERS}"' in body
    assert "SingleLogoutService" not in body


@pytest.mark.parametrize("path", ["metadata/", "answer/", "answer/read/"])
@pytest.mark.parametrize("slug", ["saml", "elsewhere"])
def test_without_such_a_provider_its_addresses_are_absent(path, slug, settings):
    settings.SOCIALACCOUNT_PROVIDERS = {}
    client = Client()
    way = client.post if path == "answer/" else client.get

    assert way(f"/sign-in/{slug}/{path}").status_code == 404


def test_half_a_provider_names_what_is_missing():
    with pytest.raises(ImproperlyConfigured, match="WEIR_SAML_CERTIFICATE is missing"):
        settings_of(WEIR_SAML_ENTITY_ID=ENTITY, WEIR_SAML_ADDRESS=ADDRESS)


def test_certificate_that_is_none_is_said_with_the_remedy(keys):
    body = "".join(keys.certificate.splitlines()[1:-1])
    given = {"WEIR_SAML_ENTITY_ID": ENTITY, "WEIR_SAML_ADDRESS": ADDRESS}
    settings_of(**given, WEIR_SAML_CERTIFICATE=body)

    with pytest.raises(ImproperlyConfigured, match="paste the signing certificate"):
        settings_of(**given, WEIR_SAML_CERTIFICATE=body[:100])


def test_two_providers_at_once_are_refused(keys):
    oidc = {f"WEIR_OIDC_{name}": "x" for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET")}
    saml = {"WEIR_SAML_ENTITY_ID": ENTITY, "WEIR_SAML_ADDRESS": ADDRESS}
    with pytest.raises(ImproperlyConfigured, match="keep one"):
        settings_of(**oidc, **saml, WEIR_SAML_CERTIFICATE=keys.certificate)
