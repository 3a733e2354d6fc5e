"""No text is in a journal twice: a run of n turns has O(n) bytes."""

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AgentReplied, AskAgent, ToolCall, ToolReturned
from ripstop.kernel.prompt import Prompt
from ripstop.styles.graph.definition import Agent, Graph, State, Transition
from ripstop.styles.graph.kit import KIT
from ripstop.styles.graph.style import GraphStyle
from ripstop.testing import Given, given

CODEC = Codec(KIT.events)


def graph(turns: int) -> Graph:
    def state(name: str, to: str) -> State:
        return State(
            name=name,
            agent="ada",
            prompt="THE-PROMPT {{initial_message}} {{last_agent_content}}",
            transitions=(Transition(to=to, condition="go"),),
        )

    return Graph(
        name="g",
        start="a",
        agents=(Agent(name="ada", tools=("write",)),),
        states=(state("a", "b"), state("b", "a")),
        max_turns=turns,
    )


def play(turns: int, padding: str = "") -> Given:
    """Every turn: a reply that calls two tools, their results, a reply without JSON, and one that is right."""
    story = given(GraphStyle(), graph(turns), input="THE-INPUT")
    for turn in range(turns):
        calls = tuple(
            ToolCall(id=f"c{index}", tool="write", arguments={"text": f"ARGUMENT-{turn}-{index}{padding}"})
            for index in range(2)
        )
        story.tell(AgentReplied(text=f"THINKING-{turn}{padding}", calls=calls))
        story.tell(ToolReturned(value=f"RESULT-{turn}-0{padding}"))
        story.tell(ToolReturned(value=f"RESULT-{turn}-1{padding}"))
        story.tell(AgentReplied(text=f"MUMBLE-{turn}{padding}"))
        story.tell(AgentReplied(text=f'{{"content": "SAID-{turn}{padding}", "decisions": {{"go": true}}}}'))
    return story


def bodies(story: Given) -> str:
    return "\n".join(CODEC.dump(record.event).decode() for record in story.records)


def test_no_word_of_agents_tools_or_prompts_stands_twice() -> None:
    written = bodies(play(4))
    marks = [f"{kind}-{turn}" for turn in range(4) for kind in ("THINKING", "MUMBLE", "SAID")]
    marks += [f"{kind}-{turn}-{index}" for turn in range(4) for index in range(2) for kind in ("ARGUMENT", "RESULT")]
    assert {mark: written.count(mark) for mark in marks} == dict.fromkeys(marks, 1)
    assert written.count("THE-INPUT") == 1
    assert written.count("THE-PROMPT") == 0


def test_a_run_twice_as_long_has_twice_the_bytes() -> None:
    short, long = len(bodies(play(10, "x" * 500))), len(bodies(play(20, "x" * 500)))
    assert long < short * 2.05


def test_every_prompt_can_still_be_put_together_from_the_records() -> None:
    story = given(GraphStyle(), graph(3), input="THE-INPUT")
    calls = (ToolCall(id="c", tool="write", arguments={"text": "ARGUMENT"}),)
    for fact in (AgentReplied(text="THINKING", calls=calls), ToolReturned(value="RESULT"), AgentReplied(text="MUMBLE")):
        story.tell(fact)
    assert story.run is not None
    opened = story.run.open[story.opened(AskAgent)]
    assert isinstance(opened.command, AskAgent)
    prompt: Prompt = GraphStyle().render(opened.state, opened.command)
    said = "\n".join(message.text for message in prompt.messages)
    assert all(word in said for word in ("THE-PROMPT", "THE-INPUT", "THINKING", "RESULT", "MUMBLE"))
    assert [message.role for message in prompt.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
