"""The OpenAPI document is true: schemathesis finds no answer that it does not describe, and no 5xx."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ripstop.faces.http import event_stream
from ripstop.kernel.text_limits import LONGEST_MESSAGE
from ripstop.styles.conversation.chats import LONGEST_VARIABLE, MOST_VARIABLES
from ripstop.styles.conversation.http.openapi import ERRORS, openapi_document
from tests.styles.conversation.http.served_bot import TOKEN, chat_server

EXAMPLES = "40"
"""For each operation and phase."""


def test_every_answer_of_every_path_is_described() -> None:
    document = openapi_document(["shop"])
    operations = [
        operation
        for path in document["paths"].values()
        for method, operation in path.items()
        if method in ("get", "post")
    ]
    assert len(operations) == 5
    for operation in operations:
        described = {int(status) for status in operation["responses"]}
        assert described >= {200, 400, 401, 403, 408, 413, 421, 429, 431, 500, 503}, operation["operationId"]
        assert described <= {200, 202, *ERRORS}


def test_the_page_about_http_names_the_bounds_of_a_message() -> None:
    page = (Path(__file__).parents[4] / "docs" / "http.md").read_text(encoding="utf-8")
    said = " ".join(page.split())
    assert f"The `text` has 1 to {LONGEST_MESSAGE:,} characters." in said
    assert f"at most {MOST_VARIABLES} texts of at most {LONGEST_VARIABLE:,} characters" in said


@pytest.mark.long
def test_schemathesis_finds_nothing_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_STREAM_SECONDS", 0.1)  # a stream ends, so that the test does

    async def main() -> tuple[int | None, str]:
        async with chat_server(tmp_path, seconds=120, wrong_tokens=100_000) as server:
            for session in ("0", "ann"):
                await server.say("hi", "m1", session=session, params={"wait": 10})
            tester = await asyncio.create_subprocess_exec(
                *(str(Path(sys.executable).with_name("schemathesis")), "run", "--generation-deterministic"),
                *("--max-examples", EXAMPLES, "--mode", "all", "--checks", "all", "--no-color"),
                *("-H", f"Authorization: Bearer {TOKEN}", f"http://127.0.0.1:{server.port}/openapi.json"),
                cwd=tmp_path,
                env={**os.environ, "COLUMNS": "120"},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await tester.communicate()
            return tester.returncode, output.decode()

    code, output = asyncio.run(main())
    assert code == 0, output
