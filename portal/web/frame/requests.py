"""The request of a signed-in person, for views behind ``login_required``, and what forms share."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django_htmx.middleware import HtmxDetails

from portal.accounts.models import User


class PersonRequest(HttpRequest):
    user: User
    htmx: HtmxDetails
    is_own_work: bool
    """Of a page about one workload; absent elsewhere."""


TURN = "turn"
"""Of the buttons of a form that asks for other fields: which kind of it is shown next."""


def turned(request: HttpRequest) -> HttpResponse | None:
    """To the address of the form of another kind with what was typed; None where no such button was pressed.

    Such a button posts: sent by GET, a form takes its CSRF token into the address, histories and logs.
    """
    if TURN not in request.POST:
        return None
    typed = request.POST.copy()
    kind = typed.pop(TURN)[-1]
    typed.pop("csrfmiddlewaretoken", None)
    typed["kind"] = kind
    return HttpResponseRedirect(f"{request.path}?{typed.urlencode()}")
