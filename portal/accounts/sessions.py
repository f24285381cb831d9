"""Sessions in the database that end by themselves: after idle hours, and after days in any case.

The session's own row says when it began and was last used, so both times cost no query of their own.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.utils import timezone

from portal.accounts.models import Session

BEGAN, ADDRESS, BROWSER, HOW = "began", "address", "browser", "how"
"""Kept in the session's data, from which its row is written."""
SEEN_EVERY = timedelta(minutes=1)


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def idle() -> timedelta:
    return timedelta(seconds=settings.WEIR_SESSION_IDLE_S)


def longest() -> timedelta:
    return timedelta(seconds=settings.SESSION_COOKIE_AGE)


def ends_at(began: datetime, seen: datetime) -> datetime:
    return min(seen + idle(), began + longest())


class SessionStore(db.SessionStore):
    row: Session | None = None
    """As loaded; None for a session that is new or not loaded yet."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def _get_session_from_db(self) -> Session | None:
        self.row = self._living()
        if self.row is None:
            self._session_key = None
        return self.row

    def _living(self) -> Session | None:
        """Asked for by its key alone, and in no order: every request begins with it."""
        now = timezone.now()
        try:
            row = Session.objects.get(pk=digest_of(self.session_key or ""))
        except Session.DoesNotExist:
            return None
        return row if row.seen_at > now - idle() and row.began_at > now - longest() else None

    def exists(self, session_key: str) -> bool:
        return super().exists(digest_of(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        key: str = self._get_or_create_session_key()  # type: ignore[attr-defined] # untyped
        began = datetime.fromisoformat(data.setdefault(BEGAN, timezone.now().isoformat()))
        seen = max(began, self.row.seen_at) if self.row else began
        return Session(
            session_key=digest_of(key),
            session_data=self.encode(data),
            expire_date=ends_at(began, seen),
            user_id=data.get(SESSION_KEY),
            began_at=began,
            seen_at=seen,
            address=data.get(ADDRESS, ""),
            browser=data.get(BROWSER, ""),
            how=data.get(HOW, ""),
        )

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key is not None:
            Session.objects.filter(pk=digest_of(key)).delete()

    def touch(self) -> None:
        """Note that the person did something; writes once a minute."""
        now = timezone.now()
        if self.row is None or now - self.row.seen_at < SEEN_EVERY:
            return
        self.row.seen_at = now
        self.row.expire_date = ends_at(self.row.began_at, now)
        sessions = Session.objects.filter(pk=self.row.pk)
        sessions.update(seen_at=now, expire_date=self.row.expire_date)

    async def _aget_session_from_db(self) -> Session | None:
        return await sync_to_async(self._get_session_from_db)()

    async def aexists(self, session_key: str) -> bool:
        return await super().aexists(digest_of(session_key))

    async def acreate_model_instance(self, data: dict[str, Any]) -> Session:
        return self.create_model_instance(data)

    async def adelete(self, session_key: str | None = None) -> None:
        await sync_to_async(self.delete)(session_key)
