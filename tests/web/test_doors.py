"""W-1 to W-6: who comes in, from where, and what every answer says to a browser."""

import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripstop.faces.web.application import ROUTES
from ripstop.faces.web.rendering import FOLDER, static_address
from tests.web.desk_server import DeskServer

HEADERS = {
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "permissions-policy",
    "x-frame-options",
    "cache-control",
}
POST_FROM_ELSEWHERE = """
address => fetch(address, {method: 'POST', credentials: 'include', mode: 'no-cors', body: 'a=b'})
  .then(answer => answer.type, () => 'failed')
"""
PATHS = ["/desk", "/runs", "/live", static_address("desk.css"), "/login"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:{port}.",
        "localhost.:{port}",
        "127.0.0.1:1",
        "[::2]:{port}",
    ],
)
def test_w1_answers_under_its_own_names_only(demo: DeskServer, path: str, host: str) -> None:
    reply = demo.request("GET", path, {"host": host.format(port=demo.port)})
    assert reply.status in (400, 421)
    assert b"ripstop</title>" not in reply.body


@pytest.mark.parametrize("host", ["LOCALHOST:{port}", "localhost:{port}", "[::1]:{port}"])
def test_w1_knows_its_own_names_in_any_case(demo: DeskServer, host: str) -> None:
    assert demo.request("GET", "/runs", {"host": host.format(port=demo.port)}).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_w2_a_rebound_name_changes_nothing(demo: DeskServer, origin: str) -> None:
    person = demo.sign_in()
    headers = {"cookie": person.cookie, "origin": origin}
    reply = demo.request("POST", "/look", headers, {"theme": "dark", **person.form_fields("/look")}, with_token=False)
    assert reply.status == 403
    rebound = demo.request("POST", "/look", {**headers, "host": "evil.example"}, {"theme": "dark"}, with_token=False)
    assert rebound.status == 421


def test_w3_a_form_needs_its_own_session(demo: DeskServer) -> None:
    ann, bob = demo.sign_in("ann"), demo.sign_in("bob")
    assert ann.post("/look", {"theme": "dark"}).status == 303
    assert ann.post("/look", {"theme": "dark", "csrf": ""}).status == 403
    assert ann.post("/look", {"theme": "dark", "csrf": bob.form_fields("/look")["csrf"]}).status == 403


def test_w3_refuses_a_cross_site_form_and_fetch_in_a_real_browser(demo: DeskServer, visit, foreign_site: str) -> None:
    window = visit(demo)
    page = window.page
    page.goto(f"{foreign_site}/form?to={demo.address}/runs/x/cancel")
    with page.expect_navigation():
        page.click("button")
    assert "403" in page.content() or "/login" in page.url
    page.goto(foreign_site)
    told = page.evaluate(
        POST_FROM_ELSEWHERE,
        f"{demo.address}/runs/x/cancel",
    )
    assert told in ("opaque", "failed")
    readable = page.evaluate(
        "address => fetch(address, {credentials: 'include'}).then(() => 'read', () => 'refused')",
        f"{demo.address}/desk",
    )
    assert readable == "refused"


@pytest.fixture
def foreign_site() -> Iterator[str]:
    """A page of another origin, on another port."""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            to = self.path.partition("to=")[2]
            body = f'<form method="post" action="{to}"><input name="a" value="b"><button>go</button></form>'.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_w4_the_link_works_once_and_its_cookie_is_closed_to_scripts(tmp_path: Path, demo: DeskServer) -> None:
    server = DeskServer(tmp_path, "--as", "ann")
    try:
        path = server.link.removeprefix(server.address)
        first = server.request("GET", path, with_token=False)
        assert first.status == 303 and first.headers["location"] == "/desk"
        cookie = first.headers["set-cookie"]
        assert cookie.startswith(f"ripstop_{server.port}=")
        assert {"httponly", "path=/", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
        assert server.request("GET", path, with_token=False).status == 401
        assert server.token not in server.log and server.token not in path
        origin = {"origin": server.address}
        wrong = [
            server.request("POST", "/login", origin, {"token": "wrong", "by": "x"}, with_token=False).status
            for _ in range(11)
        ]
        assert wrong[0] == 401 and wrong[-1] == 429
    finally:
        server.stop()


def test_w4_who_is_not_signed_in_is_sent_to_do_so_and_comes_back(demo: DeskServer) -> None:
    reply = demo.request("GET", "/runs?status=failed", with_token=False)
    assert reply.status == 303 and reply.headers["location"] == "/login?next=%2Fruns%3Fstatus%3Dfailed"
    outside = demo.request(
        "GET", "/login?next=https://evil.example/", {"cookie": demo.sign_in().cookie}, with_token=False
    )
    assert outside.headers["location"] == "/desk"


def test_w4_who_is_not_signed_in_sees_nothing_of_the_journal(demo: DeskServer) -> None:
    origin = {"origin": demo.address}
    replies = [
        demo.request("GET", "/static/nosuch.css", with_token=False),
        demo.request("PUT", "/login", origin, with_token=False),
        demo.request("POST", "/login", {**origin, "content-type": "text/plain"}, body=b"x", with_token=False),
        demo.request("POST", "/login", origin, {"token": "wrong", "by": "a\nb"}, with_token=False),
    ]
    for reply in replies:
        assert reply.status >= 400 and "data-count" not in reply.text and "review-" not in reply.text


def test_w4_looking_for_the_link_does_not_use_it(tmp_path: Path) -> None:
    server = DeskServer(tmp_path)
    try:
        path = server.link.removeprefix(server.address)
        server.request("HEAD", path, with_token=False)
        assert server.request("GET", path, with_token=False).headers["location"] == "/desk"
    finally:
        server.stop()


def test_w5_every_answer_has_every_header(demo: DeskServer) -> None:
    person = demo.sign_in()
    checked = 0
    for method, path, _ in ROUTES:
        if path == "/live":
            continue
        real = re.sub(r"\{number:int\}", "1", path)
        real = re.sub(r"\{[a-z]+(:path)?\}", "none", real)
        reply = person.get(real) if method == "GET" else person.post(real, {"csrf": "wrong"})
        missing = HEADERS - reply.headers.keys()
        assert not missing, f"{method} {real} ({reply.status}) lacks {missing}"
        assert "'unsafe" not in reply.headers["content-security-policy"]
        checked += 1
    assert checked == len(ROUTES) - 1


def test_w6_no_template_has_anything_inline() -> None:
    for template in (FOLDER / "templates").glob("*.html"):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?! src=)|javascript:", text), template.name
        assert "|safe" not in text and "| safe" not in text, template.name
    for script in (FOLDER / "static").glob("*.js"):
        code = script.read_text(encoding="utf-8")
        assert not re.search(r"insertAdjacentHTML|outerHTML\s*=(?!=)|document\.write|\beval\(|new Function", code), (
            script.name
        )
        assert len(re.findall(r"innerHTML\s*=", code)) == (1 if script.name == "live.js" else 0), script.name


def test_w6_no_page_breaks_the_content_policy(demo: DeskServer, visit) -> None:
    window = visit(demo)
    for path in pages_of(window):
        window.open(path)
    window.check()


def pages_of(window) -> list[str]:
    """One page of each kind, by following links."""
    found = ["/desk", "/runs", "/runs/new", "/chats", "/documents", "/workflows", "/health", "/look", "/keys"]
    for path, selector in (
        ("/desk", "a.item"),
        ("/runs", ".c-id a"),
        ("/chats", "a.item"),
        ("/documents", ".c-id a"),
        ("/workflows", ".c-id a"),
    ):
        page = window.open(path)
        found += list(dict.fromkeys(link.get_attribute("href") for link in page.query_selector_all(selector)))[:30]
    return found
