"""What a page shows of a run: its outline, and parts of it, without the whole of it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.history import outline as outlines_module
from ripstop.history import outline as snapshots_module
from ripstop.history.narration import in_short
from ripstop.history.outline import Outline, Outlines, Snapshots, TurnLine
from ripstop.history.timeline import explain, last_word, step_of, timeline, ways_after_end
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    CallTool,
    Failed,
    Limits,
    RunFinished,
    Say,
    StartRun,
    ToolReturned,
    Usage,
)
from ripstop.kernel.errors import RecordNotFound, RunNotFound, RunUnreadable
from ripstop.kernel.events import Ended, Heard, Record
from ripstop.kernel.prompt import seal
from ripstop.kernel.resuming import ways_on
from ripstop.styles.graph.samples import samples
from ripstop.styles.graph.style import GraphView
from ripstop.testing import Errands
from tests.engine.looked_at import PLUGINS, an_engine, answer, errands, every_run, in_a_loop

WRITE, PAY = CallTool(tool="write", agent="ada", arguments={}), CallTool(tool="pay", arguments={})
ADA, BOB = AskAgent(agent="ada"), AskAgent(agent="bob")
SECOND = 1_000_000


def everything(outline: Outline) -> tuple[Any, ...]:
    return list(outline), list(outline.calls), outline.open, outline.trouble, outline.turns, outline.last_word


async def play(engine: Engine, kit_name: str, sample: Any) -> str:
    content = msgspec.json.encode(sample.definition, order="deterministic")
    run = await engine.start("run", kit_name, content, sample.input, sample.arguments)
    for given in sample.answers:
        run = await answer(engine, run.id, given)
    return run.id


class CountedReads:
    """Notes what is read of a journal."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.after: list[int] = []
        read = engine.journal.read

        async def noted(run_id: str, after: int = 0, **more: Any) -> list[Record]:
            self.after.append(after)
            return await read(run_id, after, **more)

        monkeypatch.setattr(engine.journal, "read", noted)


# Every style, every kind of record


@in_a_loop
async def test_an_outline_grown_step_by_step_is_the_one_grown_at_once(tmp_path: Path) -> None:
    for kit in PLUGINS.kits:
        for sample in kit.samples() if kit.samples else ():
            folder = tmp_path / f"{kit.name}-{sample.name}"
            folder.mkdir()
            async with an_engine(folder) as engine:
                content = msgspec.json.encode(sample.definition, order="deterministic")
                run = await engine.start("run", kit.name, content, sample.input, sample.arguments)
                growing = Outlines(engine)
                for given in (*sample.answers, None):
                    at_once = await Outlines(engine).of("run")
                    assert everything(await growing.of("run")) == everything(at_once)
                    if given and not run.ended:
                        run = await answer(engine, "run", given)


@in_a_loop
async def test_the_lines_of_a_run_have_all_its_records_in_order(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        for run_id in await every_run(engine):
            outline = await Outlines(engine).of(run_id)
            lines, story = list(outline), await timeline(engine, run_id)
            assert outline.records == len(story) and outline.run == story[-1].run
            if not lines:
                continue
            assert lines[0].first == 1 and lines[-1].last == len(story), run_id
            assert [line.first for line in lines[1:]] == [line.last + 1 for line in lines[:-1]]
            assert [line.index for line in lines if line.index] == list(range(1, outline.turns + 1))
            for number in range(1, len(story) + 1):
                place = outline.place_of(number)
                assert place is not None and lines[place].first <= number <= lines[place].last
            assert outline.place_of(0) is None and outline.place_of(len(story) + 1) is None
            assert outline[-2:] == lines[-2:] and outline[0] == lines[0]


@in_a_loop
async def test_a_record_is_told_as_in_the_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "INTERVAL", 5)
    async with an_engine(tmp_path) as engine:
        for run_id in await every_run(engine):
            outlines, story = Outlines(engine), await timeline(engine, run_id)
            for number in (*range(1, len(story) + 1), *range(len(story), 0, -1)):
                assert await outlines.at(run_id, number) == story[number - 1]


@in_a_loop
async def test_a_window_is_a_part_of_the_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "INTERVAL", 5)
    async with an_engine(tmp_path) as engine:
        for run_id in await every_run(engine):
            outlines, story = Outlines(engine), await timeline(engine, run_id)
            length = len(story)
            assert await outlines.window(run_id) == story
            for size in (1, 4, length + 1):
                assert await outlines.window(run_id, most=size) == story[-size:]
                for number in range(0, length + 2, 3):
                    before = story[: max(0, number - 1)]
                    assert await outlines.window(run_id, before=number, most=size) == before[-size:]
                    assert await outlines.window(run_id, after=number, most=size) == story[number : number + size]
            assert await outlines.window(run_id, after=1, before=3, most=9) == story[1:2]
            bare = [replace(entry, prompt=None, genuine=None) for entry in story]
            assert await outlines.window(run_id, with_prompts=False) == bare


@in_a_loop
async def test_a_step_and_its_reasons_are_those_of_the_timeline(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        for run_id in await every_run(engine):
            outlines, story = Outlines(engine), await timeline(engine, run_id)
            assert (await outlines.of(run_id)).last_word == last_word(story)
            for number in range(1, len(story) + 1):
                step = step_of(story, number)
                assert await outlines.step(run_id, number) == step
                assert await outlines.why(run_id, number) == [(one, explain(engine, story, one)) for one in step]
            verdict = story[-1].run.verdict
            assert await outlines.ways(run_id) == (ways_on(verdict) if verdict else ways_after_end(engine, story))


# Reading no more than is needed


@in_a_loop
async def test_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA,), (BOB,))
        outlines, reads = Outlines(engine), CountedReads(engine, monkeypatch)
        await outlines.of("run")
        await outlines.of("run")
        assert reads.after == [0]
        length = (await engine.look("run")).run.length
        await answer(engine, "run", AgentReplied(text="Done."))
        reads.after.clear()
        assert (await outlines.of("run"))[0].gist == "Done."
        assert reads.after == [length]


@in_a_loop
async def test_two_who_look_at_the_same_time_read_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA,))
        outlines, reads = Outlines(engine), CountedReads(engine, monkeypatch)
        one, other = await asyncio.gather(outlines.of("run"), outlines.of("run"))
        assert one is other and reads.after == [0]


@in_a_loop
async def test_a_long_run_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines_module, "CHUNK", 3)
    monkeypatch.setattr(outlines_module, "SLICE", 2)
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", samples()[0])
        reads = CountedReads(engine, monkeypatch)
        outline = await Outlines(engine).of(run_id)
        assert reads.after == [0, 3, 6, 9, 12] and outline.records == 14


@in_a_loop
async def test_a_record_in_the_middle_is_folded_from_the_snapshot_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots_module, "INTERVAL", 4)
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", samples()[0])
        outlines = Outlines(engine)
        await outlines.of(run_id)
        reads = CountedReads(engine, monkeypatch)
        await outlines.at(run_id, 11)
        await outlines.at(run_id, 12)
        assert reads.after == [8, 10], "the second look begins where the first was"


@in_a_loop
async def test_forgets_the_run_that_was_looked_at_longest_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_engine(tmp_path) as engine:
        for name in ("a", "b", "c"):
            await errands(engine, name, (ADA,))
        outlines = Outlines(engine, most=2)
        first = await outlines.of("a")
        second = await outlines.of("b")
        assert await outlines.of("a") is first
        await outlines.of("c")
        assert await outlines.of("a") is first and await outlines.of("b") is not second


@in_a_loop
async def test_a_run_that_was_forgotten_is_not_shown_any_more(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        outlines = Outlines(engine)
        with pytest.raises(RunNotFound):
            await outlines.of("run")
        await errands(engine, "run", (Say(text="one"), Say(text="two")))
        assert (await outlines.of("run")).records == 5
        await engine.journal.forget(["run"], engine.clock())
        with pytest.raises(RunNotFound):
            await outlines.of("run")


@in_a_loop
async def test_says_which_records_there_are(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA,))
        for number in (0, 4):
            with pytest.raises(RecordNotFound, match="has the records 1 to 3; there is no"):
                await Outlines(engine).at("run", number)


def test_snapshots_of_a_very_long_run_are_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots_module, "INTERVAL", 2)
    monkeypatch.setattr(snapshots_module, "MAX_SNAPSHOTS", 4)
    kept = Snapshots()
    lengths = []
    for length in range(1, 41):
        run: Any = _Length(length)
        kept.pass_by(run)
        found: Any = kept.nearest(length)
        lengths.append(found.length if found else 0)
        assert len(kept) <= 4
    assert lengths[:9] == [0, 2, 2, 4, 4, 6, 6, 8, 8]
    assert (lengths[18], lengths[29], lengths[-1]) == (16, 24, 32), "every second, fourth, eighth, sixteenth"


class _Length(msgspec.Struct, frozen=True):
    length: int


@in_a_loop
async def test_a_look_that_failed_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", samples()[0])
        outlines = Outlines(engine)
        with monkeypatch.context() as broken:
            broken.setattr(GraphView, "picture", lambda *_: None)
            with pytest.raises(RunUnreadable):
                await outlines.of(run_id)
        assert len(await outlines.of(run_id)) == 4


# What a line says


async def lines_of(engine: Engine, run_id: str) -> list[TurnLine]:
    return list(await Outlines(engine).of(run_id))


@in_a_loop
async def test_a_turn_says_where_it_was_what_was_said_and_where_it_led(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", samples()[0])
        lines = await lines_of(engine, run_id)
        assert [(line.where, line.agent, line.gist, line.way, line.condition) for line in lines] == [
            ("write", "poet", "Rain.", "judge", "ready"),
            ("judge", "critic", "Too short.", "write", "NOT approved OR score < 8"),
            ("write", "poet", "Rain on the tin roof.", "judge", "ready"),
            ("judge", "critic", "Good.", "END", "approved AND score >= 8"),
        ]
        assert [(line.first, line.last, line.decided, line.tokens) for line in lines] == [
            (1, 4, 4, 17),
            (5, 7, 7, 17),
            (8, 10, 10, 17),
            (11, 14, 13, 17),
        ]
        reasons = (await Outlines(engine).why(run_id, lines[1].decided))[1][1].reasons
        assert [reason.text for reason in reasons if reason.taken] == ["to write if NOT approved OR score < 8"]


@in_a_loop
async def test_a_turn_with_tools_and_a_correction_is_one_line(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        (line,) = await lines_of(engine, await play(engine, "graph", samples()[2]))
        assert line.tools == ("read_file",) and line.gist == "It is good." and line.tokens == 51
        assert line.ended > line.began and line.seconds > 0
        assert len(line.trouble) == 1 and in_short(line.trouble[0]).startswith(
            "corrected: problem Your reply could not be used"
        )


@in_a_loop
async def test_a_file_in_a_reply_is_not_its_gist(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        (line,) = await lines_of(engine, await play(engine, "graph", samples()[1]))
        assert (line.gist, line.tools) == ("Written.", ("write_file",))


@in_a_loop
async def test_what_happens_before_the_first_turn_has_a_line_if_it_is_worth_one(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "tools", (PAY,), (ADA,))
        await answer(engine, "tools", ToolReturned(value="paid"))
        opening, turn = await lines_of(engine, "tools")
        assert (opening.index, opening.agent, opening.first, opening.tools) == (0, "", 1, ("pay",))
        assert (turn.index, turn.agent, opening.last + 1) == (1, "ada", turn.first)
        await errands(engine, "agents", (ADA,))
        (turn,) = await lines_of(engine, "agents")
        assert (turn.index, turn.agent, turn.first) == (1, "ada", 1)
        assert (await Outlines(engine).of("agents")).turns == 1


@in_a_loop
async def test_a_message_belongs_to_the_turn_that_answers_it(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        content = Errands(rounds=((ADA,),), listens=True, outcome="").content()
        await engine.start("run", "errands", content)
        await answer(engine, "run", AgentReplied(text="Hello."))
        await engine.hear("run", "Once more!", "ann")
        outlines = Outlines(engine)
        asked = (await outlines.of("run"))[1]
        assert (asked.index, asked.agent, asked.gist, asked.ended) == (2, "ada", "Once more!", 0)
        assert isinstance((await outlines.at("run", asked.first)).record.event, Heard)
        await engine.hear("run", "Hurry!", "ann")
        await answer(engine, "run", AgentReplied(text="Here."))
        lines = list(await outlines.of("run"))
        assert len(lines) == 3, "a message while an agent is at work is part of that turn"
        assert (lines[1].gist, lines[1].ended > 0) == ("Here.", True)


@in_a_loop
async def test_a_message_that_needs_no_agent_is_a_turn_as_well(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        kit = next(kit for kit in PLUGINS.kits if kit.name == "conversation")
        assert kit.samples is not None
        content = msgspec.json.encode(kit.samples()[0].definition, order="deterministic")
        await engine.start("run", "conversation", content, arguments={"session": "s"})
        for _ in range(2):
            await engine.hear("run", "When are you open?", "bob")
            await answer(engine, "run", ToolReturned(value="From 9 to 5."))
        lines = await lines_of(engine, "run")
        assert [(line.index, line.agent, line.gist, line.tools) for line in lines] == [
            (1, "assistant", "From 9 to 5.", ("opening_hours",)),
            (2, "assistant", "From 9 to 5.", ("opening_hours",)),
        ]
        assert all(line.ended for line in lines)


@in_a_loop
async def test_a_turn_is_open_until_nothing_of_it_is_under_way(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA, WRITE), (Say(text="so"),))
        outlines = Outlines(engine)
        (line,) = await outlines.of("run")
        assert line.ended == 0 and line.seconds == 0
        (asked,) = [one for one in (await outlines.of("run")).open if isinstance(one.command, AskAgent)]
        assert asked.at == line.began and not asked.in_doubt
        await answer(engine, "run", AgentReplied(text="Done."))
        assert (await outlines.of("run"))[0].ended == 0, "the tool is at work"
        await answer(engine, "run", ToolReturned(value=1))
        (line,) = await outlines.of("run")
        assert line.ended - line.began == line.seconds * SECOND > 0
        assert (await outlines.of("run")).open == ()


@in_a_loop
async def test_turns_that_overlap_each_have_their_own_end_cost_and_words(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        run = await errands(engine, "run", (ADA, BOB))
        first, second = sorted(run.open)
        await answer(engine, "run", AgentReplied(text="Bob is done.", usage=Usage(1, 2)), to=second)
        await answer(engine, "run", AgentReplied(text="So is Ada.", usage=Usage(30, 40)), to=first)
        ada, bob = await lines_of(engine, "run")
        assert (ada.gist, ada.tokens, bob.gist, bob.tokens) == ("So is Ada.", 70, "Bob is done.", 3)
        assert ada.ended > bob.ended > 0


@in_a_loop
async def test_a_workflow_that_is_started_is_a_turn(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (StartRun(workflow="poem"),))
        ended = RunFinished(run="run.3", outcome="failed", because="no rhyme", usage=Usage(5, 6))
        await answer(engine, "run", ended)
        (line,) = await lines_of(engine, "run")
        assert (line.agent, line.gist, line.tokens) == ("poem", "no rhyme", 11)
        assert in_short(line.trouble[0]).startswith("child run.3 ended as failed")


@in_a_loop
async def test_time_in_which_no_process_had_a_command_is_not_time_at_work(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        run = await errands(engine, "run", (ADA,))
        asked = run.open[min(run.open)].at
        engine.clock.pass_by(7200)  # type: ignore[attr-defined]
        taken_over = asked + 7200 * SECOND
        await answer(engine, "run", AgentReplied(text="At last."), began=taken_over)
        outline = await Outlines(engine).of("run")
        assert 0 < outline[0].seconds < 10
        (call,) = outline.calls
        assert call.start == taken_over


@in_a_loop
async def test_a_turn_that_a_fork_asks_again_is_one_turn_without_trouble(tmp_path: Path) -> None:
    sample = next(one for one in samples() if one.name == "loop")
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", replace(sample, answers=sample.answers[:1]))
        at = max((await engine.look(run_id)).run.open)
        engine.clock.pass_by(600)  # type: ignore[attr-defined]
        forked = await engine.fork(run_id, at, "fork")
        await answer(engine, "fork", sample.answers[1])
        origin, outline = await Outlines(engine).of(run_id), await Outlines(engine).of(forked.id)
        assert outline.trouble == 0 and outline.troubled == []
        assert outline[1].agent == origin[1].agent and outline[1].gist
        assert outline[1].seconds < 60 and outline[1].first > at
        assert all(call.end - call.start < 60 * SECOND for call in outline.calls if call.end)
        assert [call.number for call in outline.calls][:2] == [origin[0].first + 1, outline[1].first]


@in_a_loop
async def test_what_is_open_in_a_fork_is_under_way_since_it_was_forked(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA,), (BOB, WRITE))
        await answer(engine, "run", AgentReplied(text="Yes."))
        run = await answer(engine, "run", AgentReplied(text="Wait."))
        engine.clock.pass_by(600)  # type: ignore[attr-defined]
        await engine.fork("run", run.length, "fork")
        await answer(engine, "fork", ToolReturned(value="done"))
        outline = await Outlines(engine).of("fork")
        assert [line.agent for line in outline] == ["ada", "bob"]
        assert all(0 < line.seconds < 60 for line in outline)
        assert all(call.end - call.start < 60 * SECOND for call in outline.calls)


@in_a_loop
async def test_trouble_is_counted_and_kept_in_short(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA, WRITE), (BOB,), limits=Limits(calls=1))
        await answer(engine, "run", AgentReplied(text="Hm."), attempt=3, retries=(("busy", 1.0), ("busy", 2.0)))
        await answer(engine, "run", Failed(reason="The drawer is stuck. " * 20))
        outline = await Outlines(engine).of("run")
        (line,) = outline.troubled
        retried, failed, stopped, ended = map(in_short, line.trouble)
        assert retried == "ada was tried again: busy"
        assert failed.startswith("tool write failed") and len(failed) <= 120
        assert stopped.startswith("budget.calls: ") and ended.startswith("ended as limit: ")
        assert outline.trouble == 4 and outline.last_word == outline.records - 1


@in_a_loop
async def test_a_late_answer_costs_but_says_nothing(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        run = await errands(engine, "run", (ADA,))
        (number,) = run.open
        sent = engine.style(run).render(run.open[number].state, ADA)
        await engine.cancel("run", "ann")
        (line,) = await lines_of(engine, "run")
        assert line.ended > 0, "it was withdrawn"
        late = AgentReplied(text="Too late.", usage=Usage(8, 9), sent=seal(sent))
        run = await answer(engine, "run", late, to=number)
        (line,) = await lines_of(engine, "run")
        assert (line.gist, line.tokens) == ("", 17)
        outlines = Outlines(engine)
        await outlines.of("run")
        assert (await outlines.at("run", run.length)).genuine, "the prompt is that of when it was asked"
        assert await outlines.at("run", run.length) == (await timeline(engine, "run"))[-1]


@in_a_loop
async def test_the_prompt_of_a_reply_is_proved_or_not(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        run = await errands(engine, "run", (ADA,), (ADA,))
        (number,) = run.open
        sent = engine.style(run).render(run.open[number].state, ADA)
        run = await answer(engine, "run", AgentReplied(text="One.", sent=seal(sent)))
        await answer(engine, "run", AgentReplied(text="Two.", sent=seal(sent)))
        outlines = Outlines(engine)
        shown = await outlines.window("run")
        assert [entry.genuine for entry in shown if entry.genuine is not None] == [True, False]
        alone = [await outlines.at("run", entry.record.number) for entry in shown]
        assert alone == shown


# Drawings


@in_a_loop
async def test_a_short_run_is_drawn_as_a_whole(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", samples()[0])
        outlines = Outlines(engine)
        drawn = await outlines.drawing(run_id)
        assert drawn is not None and drawn.left_out == 0
        assert [edge.turns for edge in drawn.diagram.edges] == [(1, 3), (4,), (2,)]
        assert await outlines.drawing(run_id) is drawn, "nothing has happened since"


@in_a_loop
async def test_a_long_run_is_drawn_from_its_last_records_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlines_module, "DRAWN", 7)
    async with an_engine(tmp_path) as engine:
        run_id = await play(engine, "graph", samples()[0])
        drawn = await Outlines(engine).drawing(run_id)
        assert drawn is not None and drawn.left_out == 7
        assert [edge.turns for edge in drawn.diagram.edges] == [(1,), (2,), ()]
        journey = drawn.diagram.journey
        assert journey is not None and journey.here is not None and drawn.diagram.nodes[journey.here].end
        assert drawn.diagram.notes[-1].startswith("Drawn from the last 7 of 14 records only")


@in_a_loop
async def test_runs_of_every_style_are_drawn_or_not_at_all(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        drawn = {}
        for run_id in await every_run(engine):
            run = (await engine.look(run_id)).run
            drawn[run.started.style] = await Outlines(engine).drawing(run_id) is not None
        assert drawn == {kit.name: kit.draw_run is not None for kit in PLUGINS.kits}


# Size


@in_a_loop
async def test_a_turn_takes_no_more_than_120_bytes_beside_its_words(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        outline = await Outlines(engine).of(await play(engine, "graph", samples()[0]))
        columns: Sequence[Any] = [one for one in vars(outline._table).values() if hasattr(one, "itemsize")]
        assert sum(column.itemsize for column in columns) <= 70


@in_a_loop
async def test_an_end_without_a_turn_is_a_line(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await errands(engine, "run", (ADA,), limits=Limits(calls=0))
        (line,) = await lines_of(engine, "run")
        assert line.index == 0 and line.ended >= line.began and len(line.trouble) == 2
        assert isinstance((await Outlines(engine).at("run", line.last)).record.event, Ended)
