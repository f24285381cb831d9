"""Firefox of the machine, driven by the WebDriver BiDi that it speaks itself: no second program between.

Playwright drives builds of its own and asks an ESR for what it does not know.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websocket import WebSocket, create_connection

STARTS_S = 60
COMES_S = 60
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


class FirefoxError(Exception):
    """What Firefox answers in place of a result."""


class Firefox:
    """One tab. ``faults`` are errors of scripts and of the content security policy since it opened."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket, self._ids = socket, itertools.count(1)
        self.faults: list[str] = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])
        self._tab = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **params: Any) -> Any:
        """The result of a command; events that come before it are kept."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            came = json.loads(self._socket.recv())
            if came.get("id") == number:
                break
            self._note(came)
        if came["type"] == "error":
            raise FirefoxError(f"{method}: {came['error']}: {came['message']}")
        return came["result"]

    def _note(self, event: dict[str, Any]) -> None:
        entry = event.get("params", {})
        text = str(entry.get("text", ""))
        is_fault = entry.get("type") == "javascript" or "Content-Security-Policy" in text
        if event.get("method") == "log.entryAdded" and entry.get("level") == "error" and is_fault:
            self.faults.append(text)

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height}
        self.send("browsingContext.setViewport", context=self._tab, viewport=size)

    def cookie(self, name: str, value: str, domain: str) -> None:
        one = {"name": name, "value": {"type": "string", "value": value}, "domain": domain}
        self.send("storage.setCookie", cookie=one)

    def goto(self, address: str) -> None:
        self.send("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def run(self, script: str) -> Any:
        """The value of an expression, by way of JSON."""
        came = self.send(
            "script.evaluate",
            expression=f"JSON.stringify({script})",
            target={"context": self._tab},
            awaitPromise=True,
        )
        if came["type"] == "exception":
            raise FirefoxError(came["exceptionDetails"]["text"])
        return json.loads(came["result"].get("value", "null"))

    def eventually(self, script: str) -> None:
        """Wait until an expression is true, a page that comes meanwhile included."""
        until = time.monotonic() + COMES_S
        while time.monotonic() < until:
            try:
                if self.run(script):
                    return
            except FirefoxError:
                pass  # The page went away under the question.
            time.sleep(0.05)
        raise AssertionError(f"never came: {script}\n{self.run('document.body.innerText')[:2000]}")

    def sees(self, text: str) -> None:
        self.eventually(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, selector: str) -> None:
        """As a person does, once it can be: the pointer goes to the middle of the element and presses."""
        self.eventually(f"document.querySelector({json.dumps(selector)})?.disabled === false")
        found = self.element(selector)
        origin = {"type": "element", "element": found}
        steps = [{"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
                 {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]  # fmt: skip
        pointer = {"type": "pointer", "id": "mouse", "actions": steps}
        self.send("input.performActions", context=self._tab, actions=[pointer])

    def type(self, selector: str, text: str) -> None:
        """Replace what a field says, key by key."""
        self.run(
            f"(one => (one.scrollIntoView({{block: 'center'}}), one.focus(), one.select(), 0))"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        steps = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        keys = {"type": "key", "id": "keyboard", "actions": steps}
        self.send("input.performActions", context=self._tab, actions=[keys])

    def element(self, selector: str) -> dict[str, Any]:
        """A reference to the first element, in the middle of the screen, once there is one."""
        self.eventually(f"!!document.querySelector({json.dumps(selector)})")
        came = self.send(
            "script.evaluate",
            expression=f"(one => (one.scrollIntoView({{block: 'center'}}), one))"
            f"(document.querySelector({json.dumps(selector)}))",
            target={"context": self._tab},
            awaitPromise=False,
        )
        return {"sharedId": came["result"]["sharedId"]}


@contextmanager
def opened(program: str, folder: Path) -> Iterator[Firefox]:
    """A browser with a profile of its own in ``folder``."""
    said = folder / "firefox.log"
    flags = ["--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(folder)]
    with said.open("w") as log:
        process = subprocess.Popen([program, *flags, "about:blank"], stdout=log, stderr=log)
    try:
        socket = create_connection(f"{_address(said)}/session", COMES_S, suppress_origin=True)
        yield Firefox(socket)
        socket.close()
    finally:
        process.terminate()
        process.wait(30)


def _address(said: Path) -> str:
    until = time.monotonic() + STARTS_S
    while time.monotonic() < until:
        if found := LISTENS.search(said.read_text()):
            return found[1]
        time.sleep(0.1)
    raise FirefoxError(f"It does not listen: {said.read_text()[-500:]}")
