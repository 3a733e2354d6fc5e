"""A real `ripstop web` in a process of its own, and plain HTTP requests to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

START_SECONDS = 120
"""A machine that does much else at the same time takes its time to build the demonstration."""


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class DeskServer:
    """`ripstop web`, started with some arguments in a folder."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        module: str = "ripstop",
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "web.stderr"
        given = [sys.executable, "-m", module, "--json", "web", "--port", str(port), *arguments]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                given, cwd=folder, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **(environment or {})}
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"ripstop web did not start: {self.log}"
        told = json.loads(line)
        self.address: str = told["address"]
        self.link: str = told["sign_in"]
        self.token_file: Path = folder / told["token"]
        self.store: str = told["store"]
        self.port = urlsplit(self.address).port or 0
        self._people: dict[str, Person] = {}

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-4000:]

    @property
    def token(self) -> str:
        return self.token_file.read_text().strip()

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        *,
        body: bytes = b"",
        with_token: bool = True,
    ) -> Reply:
        """One request, as a program sends it unless `with_token` is false."""
        sent = {"host": f"127.0.0.1:{self.port}"}
        if with_token:
            sent["authorization"] = f"Bearer {self.token}"
        if form is not None:
            body = urlencode(form).encode()
            sent["content-type"] = "application/x-www-form-urlencoded"
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            if body or method == "POST":
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            found = Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()
        return found

    def get(self, path: str, **headers: str) -> Reply:
        return self.request("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})

    def sign_in(self, by: str = "ann", again: bool = False) -> "Person":
        """A person with a session of their own, by the token; the same one each time, unless they sign in again.

        The server allows ten attempts a minute.
        """
        if by in self._people and not again:
            return self._people[by]
        origin = {"origin": self.address}
        reply = self.request("POST", "/login", origin, {"token": self.token, "by": by}, with_token=False)
        assert reply.status == 303, reply.text[:500]
        self._people[by] = Person(self, reply.headers["set-cookie"].partition(";")[0])
        return self._people[by]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self._close()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        finally:
            self._close()

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


class Person:
    """Somebody with a cookie, and no script."""

    def __init__(self, server: DeskServer, cookie: str) -> None:
        self.server = server
        self.cookie = cookie

    def get(self, path: str, **headers: str) -> Reply:
        sent = {"cookie": self.cookie, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.server.request("GET", path, sent, with_token=False)

    def form_fields(self, path: str) -> dict[str, str]:
        """The hidden fields that the forms of a page carry: those of the first form."""
        html = self.get(path).text
        return dict(re.findall(r'name="(csrf|intent)" value="([^"]*)"', html))

    def post(self, path: str, form: Mapping[str, str], page: str = "/look", **headers: str) -> Reply:
        """Send a form as a page of the desk does; its hidden fields are taken from `page`, unless they are given."""
        fields = {**self.form_fields(page), **form}
        sent = {"cookie": self.cookie, "origin": self.server.address, "sec-fetch-site": "same-origin"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.request("POST", path, sent, fields, with_token=False)
