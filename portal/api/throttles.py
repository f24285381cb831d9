"""How much one person, or one unknown address, may ask of the API in a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.accounts.audit import record
from portal.accounts.tries import origin_of
from portal.boundary.limits import spend

if TYPE_CHECKING:
    from rest_framework.views import APIView  # imports this module by the settings


class PersonThrottle(BaseThrottle):
    """By person, with all their tokens and sessions together."""

    wait_s: float = 0

    def allow_request(self, request: Request, view: APIView) -> bool:
        self.wait_s = spend(f"api:{request.user.pk}", settings.WEIR_API_RATE)
        return not self.wait_s

    def wait(self) -> float:
        return self.wait_s


def throttle_unknown(request: Request, *, bad_token: bool) -> None:
    """Count a request that nobody known made. Raises Throttled when its address makes too many."""
    address = origin_of(request.META.get("REMOTE_ADDR", ""))
    wait_s = spend(f"unknown:{address}", settings.WEIR_API_RATE_UNKNOWN)
    if wait_s:
        raise Throttled(wait=wait_s)
    if bad_token:
        record("token.refused", request, user=None, refused=True)
