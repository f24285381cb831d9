"""The organisation's provider where it speaks SAML: the question, its answer, and what it knows of Weir.

The answer is a form that the browser posts from the provider's page, without Weir's cookie. allauth keeps it
for the moment and has the browser ask for it from here, where the session is known; there it is read, once.
What reads it loads libraries of its own, so only who has such a provider loads them.

Nothing signs out by the provider's word: its question would come unsigned, by GET, from anywhere.
"""

from __future__ import annotations

from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.providers.base import Provider
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST, require_safe

from portal.accounts.identity import SAML, kind

LONGEST_ANSWER = 256 << 10


def question(
    request: HttpRequest, provider: Provider, process: str, next_url: str | None, *, anew: bool
) -> str:
    """The address at the provider that asks it who sits at this browser; ``anew`` whatever it knows."""
    from allauth.socialaccount.providers.saml.utils import build_auth

    _name_host(request)
    auth = build_auth(request, provider)
    address: str = auth.login(return_to="", force_authn=anew)
    number = auth.get_last_request_id()
    provider.stash_redirect_state(request, process, next_url, None, state_id=number)
    return address


@csrf_exempt
@require_POST
def answer(request: HttpRequest, organization_slug: str) -> HttpResponseBase:
    """Keep what the provider has the browser post."""
    _check(organization_slug)
    from allauth.socialaccount.providers.saml.views import acs

    if not 0 < len(request.POST.get("SAMLResponse", "")) <= LONGEST_ANSWER:
        context = {"sentence": "There is no answer of the provider in it. Begin again."}
        return render(request, "accounts/provider_refused.html", context, status=400)
    _name_host(request)
    response: HttpResponseBase = acs(request, organization_slug=organization_slug)
    return response


@require_GET
def finish(request: HttpRequest, organization_slug: str) -> HttpResponseBase:
    """Read what was kept: whom the provider signed in, for which question of this browser."""
    _check(organization_slug)
    import xmlsec
    from allauth.socialaccount.providers.saml.views import finish_acs
    from lxml.etree import LxmlError

    try:
        done: HttpResponseBase = finish_acs(request, organization_slug=organization_slug)
    except (PermissionDenied, LxmlError, xmlsec.Error, ValueError):
        # The question is another browser's, or its answer was read already; or it is no XML.
        provider = get_adapter().get_provider(request, SAML)
        done = render_authentication_error(request, provider)
    return done


@require_safe
def metadata(request: HttpRequest, organization_slug: str) -> HttpResponse:
    """What the provider has to know of Weir: its name and where answers go."""
    _check(organization_slug)
    from allauth.socialaccount.providers.saml.utils import build_saml_config
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    provider = get_adapter().get_provider(request, SAML)
    config = build_saml_config(request, provider.app.settings, SAML)
    del config["sp"]["singleLogoutService"]
    described = OneLogin_Saml2_Settings(settings=config, sp_validation_only=True)
    return HttpResponse(described.get_sp_metadata(), content_type="application/samlmetadata+xml")


def _check(slug: str) -> None:
    if slug != SAML or kind() != SAML:
        raise Http404


def _name_host(request: HttpRequest) -> None:
    """The library reads the header alone, which old programs leave out."""
    request.META.setdefault("HTTP_HOST", request.get_host())
