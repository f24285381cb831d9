"""The request of a signed-in person, for views behind ``login_required``."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from portal.accounts.models import User


class PersonRequest(HttpRequest):
    user: User
    htmx: HtmxDetails
    is_own_work: bool
    """Of a page about one workload; absent elsewhere."""
