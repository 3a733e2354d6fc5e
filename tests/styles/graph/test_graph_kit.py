"""What the graph's kit offers to those who go over all styles."""

import msgspec
import pytest

from ripstop.kernel.codec import Codec
from ripstop.kernel.events import Record
from ripstop.kernel.folding import apply, replay
from ripstop.kernel.parts import Facts, Rail, Talk
from ripstop.kernel.run import fingerprint
from ripstop.kernel.style import Sample
from ripstop.styles.graph.kit import KIT
from ripstop.styles.graph.samples import samples
from ripstop.testing import Given, given
from ripstop.text.diagrams.diagram import Chapter
from ripstop.text.diagrams.formats import FORMATS

OUTCOMES = {"loop": "completed", "files": "completed", "tool_calls": "completed", "saved": "limit"}
every_sample = pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)


def played(sample: Sample) -> Given:
    story = given(KIT.style, sample.definition, input=sample.input, arguments=sample.arguments)
    for answer in sample.answers:
        story.tell(answer)
    return story


@every_sample
def test_a_sample_leads_to_its_end(sample: Sample) -> None:
    story = played(sample)
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == OUTCOMES[sample.name]


@every_sample
def test_a_sample_reads_back_from_its_bytes(sample: Sample) -> None:
    story, codec = played(sample), Codec(KIT.events)
    content = msgspec.json.encode(sample.definition)
    story.contents.definitions["definition"] = msgspec.json.decode(content, type=KIT.definition)
    records = [Record(one.number, one.at, codec.load(codec.dump(one.event))) for one in story.records]
    read = replay(KIT.style, story.contents, story.run_id, records)
    assert read is not None and story.run is not None
    assert fingerprint(read) == fingerprint(story.run)


@every_sample
def test_a_sample_is_drawn_in_every_format(sample: Sample) -> None:
    assert KIT.draw_definition and KIT.draw_run
    story, chapters = played(sample), list[Chapter]()
    for record in story.records:
        before = chapters[-1].after if chapters else None
        chapters.append(Chapter(record.event, before, apply(KIT.style, story.contents, "story", before, record)))
    for draw in FORMATS.values():
        assert draw(KIT.draw_definition(sample.definition))
        assert draw(KIT.draw_run(sample.definition, chapters))


def test_tags_begin_with_the_style_or_with_turn() -> None:
    tags = [str(event.__struct_config__.tag) for event in KIT.events]
    assert all(tag.startswith(("graph.", "turn.")) for tag in tags), tags


def test_the_result_is_what_was_said_and_decided_last() -> None:
    story = played(samples()[0])
    assert story.run is not None and story.run.ended is not None
    result = story.contents.results[story.run.ended.result]
    assert result == {"content": "Good.", "decisions": {"approved": True, "score": 9}}


def test_parts_show_the_states_the_values_and_the_decisions_in_force() -> None:
    loop = samples()[0]
    story = given(KIT.style, loop.definition, *loop.answers[:1], arguments=loop.arguments)
    assert story.run is not None
    rail, values, decisions, talk = KIT.style.view.parts(story.run)
    assert isinstance(rail, Rail) and [(one.name, one.state) for one in rail.stages] == [
        ("write", "done"),
        ("judge", "now"),
    ]
    assert values == Facts((("topic", "rain in May"),), "Values")
    assert decisions == Facts((("ready", True),), "Decisions of poet")
    assert isinstance(talk, Talk) and talk.lines[0].text == "Rain."
    assert KIT.style.view.gist(story.run) == "judge"


def test_words_of_an_unfinished_reply_are_its_content() -> None:
    read = KIT.style.view.word_reader()
    assert read('{"content": "Rain on') + read(" the") == "Rain on the"
