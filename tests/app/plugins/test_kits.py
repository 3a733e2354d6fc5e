"""What holds for every style that is installed, and for one from outside, whatever it does."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.engine.forking import ForkChanges, fork_run
from ripstop.kernel.codec import SHARED
from ripstop.kernel.events import Ended, Event, Fact, Record
from ripstop.kernel.folding import apply, replay
from ripstop.kernel.run import Contents, Run, fingerprint
from ripstop.kernel.style import Ending, Sample, StyleKit
from ripstop.testing import Given, given
from ripstop.text.diagrams.diagram import Chapter
from ripstop.text.diagrams.formats import FORMATS
from tests.toy_style import PLUGIN

PLUGINS = Plugins([*BUILT_IN, PLUGIN])
CODEC = PLUGINS.registry.codec
SAMPLES = [(kit, sample) for kit in PLUGINS.kits for sample in (kit.samples() if kit.samples else ())]
every_sample = pytest.mark.parametrize(("kit", "sample"), SAMPLES, ids=lambda one: one.name)


def steps(kit: StyleKit, sample: Sample) -> Iterator[Given]:
    """The run of a sample, after every step."""
    story = given(kit.style, sample.definition, input=sample.input, arguments=sample.arguments)
    yield story
    for answer in sample.answers:
        story.tell(answer)
        yield story


def played(kit: StyleKit, sample: Sample) -> Given:
    *_, story = steps(kit, sample)
    return story


def read_back(kit: StyleKit, story: Given) -> tuple[Contents, list[Record]]:
    """Definition, results and records as another process would read them."""
    content = msgspec.json.encode(story.contents.definitions["definition"])
    definition = PLUGINS.registry.load(kit.name, content)
    results = {digest: msgspec.json.decode(msgspec.json.encode(one)) for digest, one in story.contents.results.items()}
    records = [Record(one.number, one.at, CODEC.load(CODEC.dump(one.event))) for one in story.records]
    return Contents({"definition": definition}, results), records


def chapters_of(kit: StyleKit, story: Given) -> list[Chapter]:
    told: list[Chapter] = []
    for record in story.records:
        before = told[-1].after if told else None
        told.append(Chapter(record.event, before, apply(kit.style, story.contents, story.run_id, before, record)))
    return told


@pytest.mark.parametrize("kit", PLUGINS.kits, ids=lambda kit: kit.name)
def test_every_style_has_samples(kit: StyleKit) -> None:
    assert kit.samples and kit.samples()
    names = [sample.name for sample in kit.samples()]
    assert len(set(names)) == len(names)


@every_sample
def test_a_sample_leads_to_its_end(kit: StyleKit, sample: Sample) -> None:
    ends = [story.run is not None and story.run.ended is not None for story in steps(kit, sample)]
    assert ends == [False] * (len(ends) - 1) + [True]
    assert isinstance(played(kit, sample).records[-1].event, Ended)


@every_sample
def test_a_run_is_the_same_when_folded_from_bytes_after_every_step(kit: StyleKit, sample: Sample) -> None:
    for story in steps(kit, sample):
        contents, records = read_back(kit, story)
        again = replay(kit.style, contents, story.run_id, records)
        assert again is not None and story.run is not None
        assert fingerprint(again) == fingerprint(story.run)


@every_sample
def test_a_run_can_be_forked_at_every_record(kit: StyleKit, sample: Sample) -> None:
    story = played(kit, sample)
    contents, records = read_back(kit, story)
    if kit.style.unforkable:
        assert kit.style.unforkable.endswith(".")
        return
    for at in range(1, len(records) + 1):
        shared = records[: _end_of_step(records, at)]
        fork = fork_run(kit.style, contents, "story", shared, "fork", ForkChanges(), story.now + 1)
        run = fork.step.run
        assert run.id == "fork" and not _internal_error(run)
        told = [*records[: fork.shared.length], *fork.step.records]
        again = replay(kit.style, contents, "fork", [_read(record) for record in told])
        assert again is not None and fingerprint(again) == fingerprint(run)


@every_sample
def test_everything_to_look_at_can_be_made_after_every_record(kit: StyleKit, sample: Sample) -> None:
    style = kit.style
    for chapter in chapters_of(kit, played(kit, sample)):
        run = chapter.after
        assert msgspec.json.encode(style.view.parts(run)) and msgspec.json.encode(style.view.picture(run))
        gist = style.view.gist(run)
        assert isinstance(gist, str) and len(gist) < 200 and "\n" not in gist
        actions = style.people.actions(run)
        assert len({action.name for action in actions}) == len(actions)
        assert isinstance(style.listens(run.state), bool) and isinstance(style.ending(run.state), Ending)
        if chapter.before is not None:
            style.view.explain(chapter.before.state, chapter.event)
        documents = style.documents(run)
        assert {document.collection for document in documents} <= set(kit.collections)
        assert msgspec.json.encode([document.body for document in documents])


@every_sample
@pytest.mark.parametrize("format", FORMATS)
def test_definition_and_run_are_drawn_after_every_step(kit: StyleKit, sample: Sample, format: str) -> None:
    draw = FORMATS[format]
    if kit.draw_definition:
        assert draw(kit.draw_definition(sample.definition))
    if not kit.draw_run:
        return
    chapters = chapters_of(kit, played(kit, sample))
    for end in range(1, len(chapters) + 1):
        if end == len(chapters) or isinstance(chapters[end].event, Fact):
            diagram = kit.draw_run(sample.definition, chapters[:end])
            assert draw(diagram) and diagram.journey.run == "story"


@pytest.mark.parametrize("kit", PLUGINS.kits, ids=lambda kit: kit.name)
def test_tags_begin_with_the_name_of_their_style(kit: StyleKit) -> None:
    tags = [str(event.__struct_config__.tag) for event in kit.events]
    assert all(tag.startswith((f"{kit.name}.", f"{SHARED}.")) for tag in tags), tags


@every_sample
def test_a_sample_uses_only_events_of_its_kit(kit: StyleKit, sample: Sample) -> None:
    own: set[type[Event]] = {type(record.event) for record in played(kit, sample).records}
    foreign = {event for other in PLUGINS.kits if other is not kit for event in other.events} - set(kit.events)
    assert not own & foreign


def _end_of_step(records: list[Record], at: int) -> int:
    """As a fork cuts: at a fact right behind it, elsewhere at the end of the step."""
    if records[at - 1].event.is_fact:
        return at
    return next((record.number - 1 for record in records[at:] if record.event.is_fact), len(records))


def _read(record: Record) -> Record:
    return Record(record.number, record.at, CODEC.load(CODEC.dump(record.event)))


def _internal_error(run: Run[Any]) -> bool:
    return run.ended is not None and "bug in ripstop" in run.ended.because
