"""What the live line shows of a reply that is still coming."""

from ripstop.faces.cli.live_words import UnfinishedWords
from ripstop.runtime.live import Token
from ripstop.styles.graph import KIT


def shown(*pieces: tuple[int, str]) -> UnfinishedWords:
    words = UnfinishedWords(KIT.style.word_reader)
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
