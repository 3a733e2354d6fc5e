"""The example delivers a web page that works: it is opened in a real browser and used."""

import html
import json
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.walks.delivery import deliver

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
USER = """<!doctype html><title>waiting</title><iframe id="page" src="index.html"></iframe>
<script>
const frame = document.getElementById("page");
let visits = 0;
frame.onload = () => {
  const page = frame.contentDocument;
  const shown = (item) => item.querySelector("span").innerText + item.className;
  const items = () => [...page.querySelectorAll("#list li")].map(shown);
  visits += 1;
  if (visits === 1) {
    for (const words of ["buy milk", "   ", "<b>call</b> mum"]) {
      page.getElementById("text").value = words;
      page.querySelector("form button").click();
    }
    page.querySelector("#list input").click();
    frame.contentWindow.location.reload();
  } else {
    document.body.append("SEEN " + JSON.stringify([page.title, items()]));
  }
};
</script>
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """The requests are not worth a line."""


@pytest.mark.long
def test_the_page_that_the_example_delivers_works_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"there is no browser here: none of {', '.join(BROWSERS)} (on Debian: apt install chromium)")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert deliver()[0] == 0
    (project / "user.html").write_text(USER, encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(project))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/user.html"
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [browser, *QUIET, profile, "--virtual-time-budget=10000", "--dump-dom", address]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
        server.shutdown()
    assert "SEEN" in shown.stdout, shown.stdout[-2000:] + shown.stderr[-2000:]
    seen = html.unescape(shown.stdout.rpartition("SEEN ")[2].split("</body>")[0].strip())
    assert json.loads(seen) == ["To-do", ["buy milkdone", "<b>call</b> mum"]]
