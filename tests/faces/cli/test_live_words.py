"""What the live line shows of a reply that is still coming."""

import io
import time

import pytest
from rich.console import Console

from ripstop.engine.live import Token
from ripstop.faces.cli.screen import CallUnderWay, UnfinishedWords
from ripstop.faces.cli.terminal import live_line, text_of
from ripstop.styles.graph.kit import KIT


def shown(*pieces: tuple[int, str]) -> UnfinishedWords:
    words = UnfinishedWords(KIT.style.view.word_reader)
    for attempt, text in pieces:
        words.take(Token("r", 1, text, attempt))
    return words


def test_shows_the_words_and_not_their_envelope() -> None:
    assert shown((1, '{"content": "Rain'), (1, " falls\\nsoft"), (1, 'ly", "decisions": {')).tail == "Rain falls softly"


def test_a_new_attempt_replaces_what_the_broken_one_showed() -> None:
    words = shown((1, "Rain fa"), (2, "Rain "), (1, "lls"), (2, "falls"))
    assert (words.tail, words.tokens) == ("Rain falls", 2)


def test_only_the_last_words_are_shown() -> None:
    assert shown((1, "a " * 5000), (1, "end")).tail.endswith("a a end")
    assert len(shown((1, "x" * 5000)).tail) < 60


def test_the_seconds_of_a_call_go_on_before_its_first_token(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with live_line(console, text_of("starting …")) as status:
        status.update(CallUnderWay([("write", "bold"), " poet  "], began=100.0, reply=None))
        shown_at = []
        for now in (100.0, 103.5, 175.0):
            monkeypatch.setattr(time, "monotonic", lambda now=now: now)
            with console.capture() as captured:
                console.print(status.renderable)
            shown_at.append(captured.get().partition("poet")[2])
    for line, elapsed in zip(shown_at, ("0.0 s", "3.5 s", "1 min 15 s"), strict=True):
        assert elapsed in line, shown_at


def test_the_line_of_a_call_shows_its_tokens_and_last_words() -> None:
    line = CallUnderWay(["poet  "], time.monotonic(), shown((1, "Rain "), (1, "falls"))).__rich__()
    assert line.plain.startswith("poet  2 tokens, ") and line.plain.endswith("s  Rain falls")
