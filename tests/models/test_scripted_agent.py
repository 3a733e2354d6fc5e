import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.engine.live import Live
from ripstop.engine.performers import PromptTooLong, Refused, TryAgain
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, ToolCall, Usage
from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.events import Answered, Asked, Forked, Record, Withdrawn
from ripstop.models.scripted import ScriptedAgent, read_script
from tests.models.asking import ask
from tests.tools.tool_requests import Alone


def script(folder, *lines):
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def say(scripted, **request):
    return asyncio.run(scripted.perform(ask(**request))).text


def records(*events):
    return [Record(number, 0, event) for number, event in events]


def asked(number, agent="x"):
    return number, Asked(command=AskAgent(agent=agent))


def answered(number, to, attempt=1, answer=AgentReplied(text="…")):
    return number, Answered(to=to, answer=answer, attempt=attempt)


def test_an_agent_gets_the_next_line_that_names_it_or_nobody(tmp_path):
    agent = ScriptedAgent(
        script(tmp_path, {"agent": "y", "reply": "y1"}, {"reply": "any"}, {"agent": "x", "reply": "x1"}, {"reply": "z"})
    )
    assert say(agent, agent="x", number=2) == "any"
    assert say(agent, agent="y", number=4) == "y1"
    assert say(agent, agent="x", number=6) == "x1"
    assert say(agent, agent="stranger", number=8) == "z"


def test_every_run_starts_at_the_top(tmp_path):
    agent = ScriptedAgent(script(tmp_path, {"reply": "one"}, {"reply": "two"}))
    assert say(agent, run="a") == "one"
    assert say(agent, run="b") == "one"


def test_a_repeated_command_hears_the_same_words(tmp_path):
    agent = ScriptedAgent(script(tmp_path, {"reply": "one"}, {"reply": "two"}))
    assert say(agent, number=2, attempt=1) == "one"
    assert say(agent, number=2, attempt=2) == "one"
    assert say(agent, number=4) == "two"


def test_a_new_process_finds_its_place_in_the_journal(tmp_path):
    path = script(tmp_path, {"reply": "one"}, {"agent": "y", "reply": "y1"}, {"reply": "two"}, {"reply": "three"})
    journal = records(
        asked(2), answered(3, to=2), asked(4, "y"), answered(5, to=4), asked(6),
        (7, Asked(command=CallTool(tool="t"))),
    )  # fmt: skip
    assert say(ScriptedAgent(path), number=6, attempt=2, records=journal) == "two"
    agent = ScriptedAgent(path)
    assert say(agent, number=6, records=journal) == "two"
    assert say(agent, number=9, records=journal) == "three"


def test_commands_that_are_open_at_once_keep_the_order_of_the_journal_after_a_crash(tmp_path):
    agent = ScriptedAgent(script(tmp_path, {"reply": "one"}, {"reply": "two"}))
    journal = records(asked(2, "x"), asked(3, "y"))
    assert say(agent, agent="y", number=3, records=journal) == "two"
    assert say(agent, agent="x", number=2, records=journal) == "one"


def test_a_retry_goes_on_to_the_line_after_the_error(tmp_path):
    lines = {"error": "rate_limit"}, {"error": "timeout"}, {"reply": "at last"}, {"reply": "next"}
    agent = ScriptedAgent(script(tmp_path, *lines))
    with pytest.raises(TryAgain) as limited:
        say(agent, number=2, attempt=1)
    assert limited.value.provider_wide
    with pytest.raises(TryAgain) as late:
        say(agent, number=2, attempt=2)
    assert not late.value.provider_wide
    assert "script.jsonl:2" in str(late.value)
    assert say(agent, number=2, attempt=3) == "at last"
    assert say(agent, number=2, attempt=4) == "at last"
    assert say(agent, number=4) == "next"


def test_error_lines_are_used_up_in_the_same_way_after_a_crash(tmp_path):
    path = script(tmp_path, {"error": "rate_limit"}, {"error": "timeout"}, {"reply": "at last"}, {"reply": "next"})
    still_open = records(asked(2))
    assert say(ScriptedAgent(path), number=2, attempt=3, records=still_open) == "at last"
    done = records(asked(2), answered(3, to=2, attempt=3), asked(4))
    assert say(ScriptedAgent(path), number=4, records=done) == "next"
    gave_up = records(asked(2), answered(3, to=2, attempt=2, answer=Failed(reason="tried twice")), asked(4))
    assert say(ScriptedAgent(path), number=4, records=gave_up) == "at last"


def test_a_script_can_say_that_a_prompt_is_too_long(tmp_path):
    agent = ScriptedAgent(script(tmp_path, {"error": "context_length"}))
    with pytest.raises(PromptTooLong, match="context_length"):
        say(agent)


def test_refused_is_not_tried_again(tmp_path):
    agent = ScriptedAgent(script(tmp_path, {"error": "refused"}))
    with pytest.raises(Refused) as refused:
        say(agent)
    assert refused.value.fault == "agent"


def test_a_withdrawn_command_has_used_its_line_and_a_fork_gives_it_back(tmp_path):
    path = script(tmp_path, {"reply": "one"}, {"reply": "two"})
    withdrawn = records(asked(2), (3, Withdrawn(number=2, because="superseded")), asked(4))
    assert say(ScriptedAgent(path), number=4, records=withdrawn) == "two"
    forked = records(asked(2), (3, Forked(run="old", at=2)), (4, Withdrawn(number=2, because="fork")), asked(5))
    assert say(ScriptedAgent(path), number=5, records=forked) == "one"


def test_running_out_says_who_which_script_and_how_many_lines(tmp_path):
    path = script(tmp_path, {"agent": "x", "reply": "1"}, {"agent": "y", "reply": "1"}, {"reply": "2"})
    agent = ScriptedAgent(path)
    say(agent, number=2)
    say(agent, number=4)
    for _ in range(2):
        with pytest.raises(Refused) as out:
            say(agent, number=6)
        assert out.value.fault == "agent"
        for part in ("'x'", str(path), "Lines in it: 3", "this agent: 1", "any agent: 1"):
            assert part in str(out.value)


def test_calls_and_usage_reach_the_answer(tmp_path):
    usage = {"input_tokens": 3, "output_tokens": 4, "money": 0.5}
    line = {"reply": "look", "calls": [{"tool": "read", "args": {"p": "甲"}}, {"tool": "list"}], "usage": usage}
    answer = asyncio.run(ScriptedAgent(script(tmp_path, line)).perform(ask(number=7)))
    assert answer == AgentReplied(
        text="look",
        calls=(
            ToolCall(id="call_7_0", tool="read", arguments={"p": "甲"}),
            ToolCall(id="call_7_1", tool="list", arguments={}),
        ),
        usage=Usage(input_tokens=3, output_tokens=4, money=0.5),
    )


def test_a_folder_gives_its_replies_in_order_and_ignores_other_files(tmp_path):
    for name, text in {
        "架构师/01_reply.txt": "first\n", "架构师/02_reply.txt": "second", "架构师/10_reply.txt": "third",
        "架构师/01_prompt.txt": "no", "架构师/01_discarded_1.txt": "no", "架构师/01_reply.txt.bak": "no",
        "coder/01_reply.txt": "code", "README.md": "no",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    agent = ScriptedAgent(tmp_path)
    assert [say(agent, agent="架构师", number=n) for n in (2, 4, 6)] == ["first\n", "second", "third"]
    assert say(agent, agent="coder", number=8) == "code"
    with pytest.raises(Refused, match="'nobody'"):
        say(agent, agent="nobody", number=10)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ('["x"]', "not an object"),
        ('{"agent": "x"}', "says nothing"),
        ('{"replay": "x"}', "unknown key 'replay'; known are agent, reply"),
        ('{"reply": {"content": "x"}}', "must be a text"),
        ('{"reply": "x", "agent": 1}', "`agent` is 1"),
        ('{"error": "oops"}', "rate_limit, timeout, refused"),
        ('{"error": ""}', "rate_limit, timeout, refused"),
        ('{"reply": "x", "delay": "1"}', "`delay`"),
        ('{"reply": "x", "delay": -1}', "`delay`"),
        ('{"reply": "x", "delay": true}', "`delay`"),
        ('{"reply": "x", "delay": NaN}', "`delay`"),
        ('{"calls": {}}', "must be a list"),
        ('{"calls": [{"args": {}}]}', "a call is"),
        ('{"calls": [{"tool": "t", "args": []}]}', "`args` of 't'"),
        ('{"calls": [{"tool": "t", "arguments": {}}]}', "unknown key of a call 'arguments'"),
        ('{"reply": "x", "usage": 5}', "`usage` is 5"),
        ('{"reply": "x", "usage": {"tokens": 5}}', "unknown key of `usage` 'tokens'"),
        ('{"reply": "x", "usage": {"input_tokens": 1.5}}', "whole numbers"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(tmp_path, line, problem):
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"reply": "fine"}}\n\n{line}\n')
    with pytest.raises(DefinitionError) as error:
        ScriptedAgent(path)
    assert f"{path}:3: " in str(error.value)
    assert problem in str(error.value)


def test_a_missing_an_empty_and_an_unreadable_script_are_refused(tmp_path):
    with pytest.raises(DefinitionError, match="No such file"):
        ScriptedAgent(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n \n")
    with pytest.raises(DefinitionError, match="empty"):
        ScriptedAgent(tmp_path / "empty.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"reply": "\xe9"}')
    with pytest.raises(DefinitionError, match="not UTF-8 at byte 11"):
        ScriptedAgent(tmp_path / "latin.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DefinitionError, match="no replies"):
        ScriptedAgent(tmp_path / "folder")


line = st.builds(
    lambda agent, error: {**({"agent": agent} if agent else {}), "error" if error else "reply": error or "r"},
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["", "", "", "timeout", "refused"]),
)


@given(
    lines=st.lists(line, min_size=1, max_size=12),
    turns=st.lists(st.sampled_from(["x", "y"]), max_size=8),
    cut=st.integers(0, 8),
)
def test_a_run_killed_anywhere_hears_what_it_would_have_heard(tmp_path_factory, lines, turns, cut):
    """The same turns, once in one process and once with a new process after `cut` of them."""
    numbered = [{**line, "usage": {"input_tokens": index}} for index, line in enumerate(lines)]
    path = script(tmp_path_factory.mktemp("script"), *numbered)

    def play(restart_at):
        agent, journal, heard = ScriptedAgent(path), [], []
        for index, name in enumerate(turns):
            if index == restart_at:
                agent = ScriptedAgent(path)
            number = 2 * index + 2
            journal.append(Record(number, 0, Asked(command=AskAgent(agent=name))))
            answer: AgentReplied | Failed
            for attempt in range(1, 4):
                try:
                    answer = asyncio.run(
                        agent.perform(ask(agent=name, number=number, attempt=attempt, records=journal))
                    )
                    break
                except TryAgain as error:
                    answer = Failed(reason=str(error))
                except Refused as error:
                    answer = Failed(reason=str(error))
                    break
            heard.append(answer)
            journal.append(Record(number + 1, 0, Answered(to=number, answer=answer, attempt=attempt)))
        return heard

    assert play(cut) == play(None)


def test_the_journal_is_read_once_per_run(tmp_path):
    agent = ScriptedAgent(script(tmp_path, *({"reply": str(n)} for n in range(1000))))
    reads = []

    async def play():
        for n in range(1000):
            request = ask(number=2 * n + 2)
            original = request.history

            async def history(original=original):
                reads.append(1)
                return await original()

            assert (await agent.perform(msgspec.structs.replace(request, access=Alone(history=history)))).text == str(n)

    asyncio.run(play())
    assert len(reads) == 1


def test_the_journal_of_a_fork_is_read_once_too(tmp_path):
    agent = ScriptedAgent(script(tmp_path, *({"reply": str(n)} for n in range(9))))
    never_made = (4, Withdrawn(number=2, because="fork", unmade=True))
    shared = records(asked(2), (3, Forked(run="old", at=2)), never_made, asked(5))
    reads = []

    async def history():
        reads.append(1)
        return shared

    async def play():
        for n in range(9):
            request = msgspec.structs.replace(ask(number=2 * n + 5), ordinal=n + 1, access=Alone(history=history))
            assert (await agent.perform(request)).text == str(n)

    asyncio.run(play())
    assert len(reads) == 1


def test_two_processes_that_take_turns_at_a_run_never_hand_out_a_line_twice(tmp_path):
    lines = "".join(json.dumps({"agent": "x", "reply": f"line {n}"}) + "\n" for n in range(6))
    path = tmp_path / "script.jsonl"
    path.write_text(lines, encoding="utf-8")
    one, two = ScriptedAgent(path), ScriptedAgent(path)
    records, heard = [], []
    for turn, agent in enumerate((one, two, two, one, one, two)):
        number = 2 * turn + 1
        records.append(Record(number, 0, Asked(command=AskAgent(agent="x"))))
        reply = asyncio.run(agent.perform(ask(number=number, ordinal=turn + 1, records=records)))
        records.append(Record(number + 1, 0, Answered(to=number, answer=reply)))
        heard.append(reply.text)
    assert heard == [f"line {n}" for n in range(6)]


def test_lines_that_another_process_used_after_an_error_are_not_handed_out_again(tmp_path):
    lines = [{"agent": "x", "error": "timeout"}, {"agent": "x", "reply": "one"}, {"agent": "x", "reply": "two"}]
    path = tmp_path / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    here, there = ScriptedAgent(path), ScriptedAgent(path)
    records = [Record(1, 0, Asked(command=AskAgent(agent="x")))]
    with pytest.raises(TryAgain):
        asyncio.run(here.perform(ask(number=1, ordinal=1, records=records)))
    reply = asyncio.run(there.perform(ask(number=1, ordinal=1, attempt=2, records=records)))
    assert reply.text == "one"
    records += [Record(2, 0, Answered(to=1, answer=reply, attempt=2)), Record(3, 0, Asked(command=AskAgent(agent="x")))]
    assert asyncio.run(here.perform(ask(number=3, ordinal=2, records=records))).text == "two"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"reply": "\\ud800"}', "half a character"),
        ('{"calls": [{"tool": "t", "args": {"a": NaN}}]}', "NaN"),
        ('{"calls": [{"tool": "t", "args": {"a": 1e999}}]}', "1e999"),
        ('{"calls": [{"tool": "t", "args": {"a": ' + "[" * 200 + "]" * 200 + "}}]}", "levels deep"),
        ('{"reply": "x", "extra": ' + "[" * 5000 + "]" * 5000 + "}", "cannot be kept"),
        ('{"reply": "x", "usage": {"input_tokens": 9223372036854775808}}', "from 0 to"),
        ('{"reply": "x", "usage": {"input_tokens": true}}', "it must be a number"),
        ('{"reply": "x", "delay": 1e300}', "from 0 to 86400"),
        ("[" + "1," * 90_000 + "1]", "is not an object"),
    ],
)
def test_a_line_that_no_journal_can_hold_is_refused_with_its_place(tmp_path, line, problem):
    path = tmp_path / "script.jsonl"
    path.write_text(f'{{"reply": "fine"}}\n{line}\n')
    with pytest.raises(DefinitionError, match=problem) as wrong:
        read_script(path)
    assert str(wrong.value).startswith(f"{path}:2: ")
    assert len(str(wrong.value)) < 500


def test_a_reply_that_costs_nothing_records_no_cost(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"reply": "hello"}\n{"reply": "hi", "usage": {"input_tokens": 3}}\n')
    free, counted = (msgspec.json.encode(line.reply) for line in read_script(tmp_path / "s.jsonl").lines)
    assert b"money" not in free
    assert b'"usage":{"input_tokens":3}' in counted


def test_a_reply_that_takes_time_is_shown_in_pieces_to_those_who_watch(tmp_path):
    live = Live()
    shown: list[Any] = []
    live.watch(shown.append)
    agent = ScriptedAgent(
        script(tmp_path, {"reply": "海报写好了, and so is the menu.", "delay": 0.3}, {"reply": "at once"}), live
    )
    assert say(agent, number=2) == "".join(token.text for token in shown) == "海报写好了, and so is the menu."
    assert len(shown) > 1 and {(token.run_id, token.number, token.attempt) for token in shown} == {("r", 2, 1)}
    shown.clear()
    assert say(agent, number=4) == "at once" and shown == []
