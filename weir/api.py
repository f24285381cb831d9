"""The portal's REST API as a command sees it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import requests

from weir.account import Account
from weir.faults import NOT_FOUND, NOT_SIGNED_IN, REFUSED, UNREACHABLE, Fault

TIMEOUT_S = (10, 120)
"""To connect, and to wait for an answer: a plan of a large cluster takes its time."""
PAGE = 500
TRIES, BETWEEN_S = 3, 1.0
EXITS = {401: NOT_SIGNED_IN, 404: NOT_FOUND, **dict.fromkeys(range(500, 600), UNREACHABLE)}
Json = Any


class Api:
    """Calls as the owner of the account's token. Every call raises Fault where it is refused."""

    def __init__(self, account: Account) -> None:
        self._base = f"{account.server}/api/v1/"
        self._cluster = account.cluster
        self._session = requests.Session()
        # A token of a .netrc would take the place of the one given.
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {account.token}"
        self._session.headers["Accept"] = "application/json"
        self._session.verify = account.ca_file or True
        self._versions: dict[str, str] = {}
        """Path -> the version of what was read there."""

    def get(self, path: str, **query: Any) -> Json:
        return self._call("GET", path, params=_query(query))

    def post(self, path: str, body: Json = None) -> Json:
        """A call whose answer was lost is sent again under its key, and carried out once."""
        sent = {"json": {} if body is None else body}
        return self._call("POST", path, headers={"Idempotency-Key": str(uuid.uuid4())}, **sent)

    def put(self, path: str, body: Json) -> Json:
        """Refused where another has changed what was read at ``path`` before; so are the other writes."""
        return self._call("PUT", path, json=body)

    def delete(self, path: str) -> None:
        self._call("DELETE", path)

    def pages(self, path: str, most: int | None = None, **query: Any) -> list[Json]:
        """All rows of a list, or the first ``most``."""
        rows: list[Json] = []
        for page in self._each_page(path, query):
            rows += page
            if most is not None and len(rows) >= most:
                return rows[:most]
        return rows

    def _each_page(self, path: str, query: Mapping[str, Any]) -> Iterator[list[Json]]:
        number = 1
        while True:
            answer = self.get(path, page=number, page_size=PAGE, **query)
            yield answer["results"]
            if not answer["next"]:
                return
            number += 1

    def within(self, path: str = "") -> str:
        """The address of ``path`` in the cluster that is meant."""
        return f"clusters/{self.cluster}/{path}".rstrip("/")

    @property
    def cluster(self) -> str:
        """Raises Fault where it is not said and there is more than one."""
        if not self._cluster:
            names = [row["name"] for row in self.pages("clusters")]
            if len(names) != 1:
                known = ", ".join(names) or "none that you may see"
                raise Fault("Which cluster?", f"Say --cluster NAME. There are: {known}.")
            self._cluster = names[0]
        return self._cluster

    def _call(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **sent: Any
    ) -> Json:
        given = dict(headers or {})
        # A caller who writes after another has written read what is there no more.
        if method != "GET" and (version := self._versions.pop(path, "")):
            given["If-Match"] = version
        answer = self._answer(method, path, headers=given, **sent)
        if method == "GET" and "ETag" in answer.headers:
            self._versions[path] = answer.headers["ETag"]
        if not answer.ok or answer.is_redirect:
            raise _fault(answer)
        return answer.json() if answer.content else None

    def _answer(self, method: str, path: str, **sent: Any) -> requests.Response:
        """Raises Fault where there is none."""
        try:
            return self._sent(method, path, **sent)
        except requests.exceptions.SSLError as error:
            raise Fault(
                "The portal's certificate is not trusted.",
                "Name its authority: weir login URL --ca-file FILE.",
                exit_code=UNREACHABLE,
            ) from error
        except requests.exceptions.RequestException as error:
            raise Fault(
                f"{self._base} does not answer.",
                "Check the address and the network, then try again.",
                exit_code=UNREACHABLE,
            ) from error

    def _sent(self, method: str, path: str, **sent: Any) -> requests.Response:
        """Sent again where no answer came to a call with a key, or the first is still carried out."""
        tries = TRIES if "Idempotency-Key" in sent["headers"] else 1
        for left in reversed(range(tries)):
            try:
                answer = self._session.request(
                    method, self._base + path, timeout=TIMEOUT_S, allow_redirects=False, **sent
                )
            except (requests.exceptions.ConnectionError, requests.exceptions.Timeout) as error:
                if isinstance(error, requests.exceptions.SSLError) or not left:
                    raise
            else:
                if not left or not _is_under_way(answer):
                    break
            time.sleep(BETWEEN_S)
        return answer


def _is_under_way(answer: requests.Response) -> bool:
    return answer.status_code == 409 and _problem(answer).get("code") == "under_way"


def _problem(answer: requests.Response) -> Mapping[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value not in (None, "", ())}


def _fault(answer: requests.Response) -> Fault:
    problem = _problem(answer)
    if "sentence" not in problem:
        return Fault(
            f"The address answers {answer.status_code}, not as a portal of Weir does.",
            "Check the address: weir login URL.",
            exit_code=UNREACHABLE,
        )
    changed = answer.status_code == 412
    return Fault(
        problem["sentence"],
        "Look at it again, then run the command again." if changed else problem.get("remedy", ""),
        code=problem.get("code", ""),
        fields=problem.get("fields"),
        exit_code=EXITS.get(answer.status_code, REFUSED),
    )


def is_uid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def workload(api: Api, named: str) -> Json:
    """The one workload of that uid or name; of several of one name the one that is not over.

    Raises Fault where there is none, or more than one is meant.
    """
    if is_uid(named):
        return api.get(api.within(f"workloads/{named}"))
    found = [row for row in api.pages(api.within("workloads"), name=named) if row["name"] == named]
    live = [row for row in found if row["state"] != "finished"] or found[:1]
    if not live:
        raise Fault(
            f"There is no workload {named}, or you may not see it.",
            "See: weir ls --all",
            exit_code=NOT_FOUND,
        )
    if len(live) > 1:
        uids = ", ".join(row["uid"] for row in live)
        raise Fault(f"{len(live)} workloads are called {named}.", f"Name one by its uid: {uids}.")
    return api.get(api.within(f"workloads/{live[0]['uid']}"))
