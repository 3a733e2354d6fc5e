"""Finding, checking and pinning go over readers, whatever styles there are."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ripstop.definitions.families import check
from ripstop.definitions.loading import find, find_all, locate
from ripstop.definitions.problems import Problem, WrongDefinition
from ripstop.definitions.reader import DefinitionReader, Environment
from ripstop.kernel.effects import AgentReplied, Limits
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.registry import Registry
from ripstop.styles.graph.definition import Graph, State
from ripstop.styles.graph.kit import KIT
from ripstop.styles.graph.reader import READER, REPLIES
from ripstop.testing import given
from tests.definitions.wrong_definitions import BOB, RIGHT, ok
from tests.journals.test_sqlite_trouble import somewhere_open, without_privileges


class Toys:
    """A style whose definitions are files that end with `.toy`."""

    style = "toy"
    looks_like = "a file that ends with .toy"
    greedy = False

    def find(self, path: Path) -> Path | None:
        return path if path.suffix == ".toy" and path.exists() else None

    def find_all(self, folder: Path) -> list[Path]:
        return sorted(folder.rglob("*.toy"))

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        return path.stem, path.read_bytes()

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        return []

    def check_pinned(self, definition: Any) -> None:
        pass

    def schema(self) -> dict[str, Any]:
        return {}

    def example(self, folder: Path) -> list[Path]:
        return []


READERS: list[DefinitionReader] = [Toys(), READER]
ANY_NAME = Environment(any_name=True)


def workflow(folder: Path, text: str = RIGHT, name: str = "right") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "workflow.yaml").write_text(text, encoding="utf-8")
    return folder / name


def test_the_reader_that_recognises_a_path_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.toy").write_bytes(b"x")
    workflow(tmp_path)
    assert [find(READERS, name, beside=tmp_path).style for name in ("a.toy", "right")] == ["toy", "graph"]
    assert [one.reader.style for one in find_all(READERS, ".", beside=tmp_path)] == ["toy", "graph"]


def test_a_name_is_looked_up_in_workflows(tmp_path: Path) -> None:
    workflow(tmp_path / "workflows")
    assert find(READERS, "right", beside=tmp_path).name == "right"
    with pytest.raises(UsageError, match="did you mean 'right'"):
        find(READERS, "rihgt", beside=tmp_path)


def test_a_file_that_no_style_knows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("hello")
    (tmp_path / "folder").mkdir()
    for named in ("a.md", "folder"):
        with pytest.raises(UsageError, match="not a workflow of any style"):
            locate(READERS, named, tmp_path)


def test_the_content_of_a_workflow_loads_back(tmp_path: Path) -> None:
    found = find(READERS, str(workflow(tmp_path)))
    graph = Registry([KIT]).load(KIT.name, found.content)
    assert isinstance(graph, Graph) and graph.name == "right"
    READER.check_pinned(graph)
    with pytest.raises(DefinitionError, match="pinned definition of a graph"):
        Registry([KIT]).load(KIT.name, b"{}")


def test_a_name_that_means_nothing_is_a_problem_of_its_own(tmp_path: Path) -> None:
    ((problem,),) = check(READERS, "gone", Environment(), tmp_path).values()
    assert "There is no workflow 'gone'" in problem.text


def test_a_workflow_that_a_state_names_is_looked_up(tmp_path: Path) -> None:
    workflow(tmp_path / "workflows", RIGHT.replace("name: right", "name: review"), "review")
    made = workflow(tmp_path, ok(BOB, "    workflow: reveiw\n"))
    (problems,) = check(READERS, str(made), Environment(), tmp_path).values()
    assert [(one.severity, one.place.line, one.place.column) for one in problems] == [("error", 22, 15)]
    assert "did you mean 'review'?" in problems[0].text
    (made / "workflow.yaml").write_text(ok(BOB, "    workflow: review\n"), encoding="utf-8")
    (problems,) = check(READERS, str(made), Environment(), tmp_path).values()
    assert [one.text for one in problems] == ["the agent 'bob' has no state"]


def test_a_state_that_runs_a_workflow_is_read_and_pinned(tmp_path: Path) -> None:
    nested = "    workflow: review\n    input: 'Check {{last_agent_content}}'\n    limits: {calls: 5, money: 1}\n"
    found = find(READERS, str(workflow(tmp_path, ok(BOB, nested))))
    graph = Registry([KIT]).load(KIT.name, found.content)
    state = graph.states[1]
    assert (state.workflow, state.input, state.limits) == (
        "review",
        "Check {{last_agent_content}}",
        Limits(calls=5, money=1.0),
    )
    READER.check_pinned(graph)
    for wrong in (
        replace(state, agent="ann", prompt="p"),
        replace(state, workflow=" "),
        replace(state, input="{{x}}"),
        replace(state, limits=Limits(calls=-1)),
        replace(state, workflow=""),
    ):
        with pytest.raises(WrongDefinition):
            READER.check_pinned(replace(graph, states=(graph.states[0], wrong)))


def test_a_graph_of_workflows_alone_needs_no_agents(tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_text("name: x\ninitial_message: y\nmax_turns: 3\nstates: [{name: s, workflow: other, start: true}]")
    assert READER.check(path, Environment()) == []
    graph = Registry([KIT]).load(KIT.name, READER.read(path, Environment())[1])
    assert graph.states == (State("s", workflow="other", line=4),)
    READER.check_pinned(graph)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ('outcome == "complete"', "did you mean 'completed'?"),
        ('outcome == "completed"', ""),
        ("outcome == true", "never ends as true"),
    ],
)
def test_an_outcome_that_cannot_be_is_a_warning(tmp_path: Path, condition: str, said: str) -> None:
    text = ok(BOB, "    workflow: other\n").replace("condition: good", f"condition: {condition}")
    (tmp_path / "any.yaml").write_text(text.replace("  - name: bob\n    type: ask\n", ""), encoding="utf-8")
    problems = READER.check(tmp_path / "any.yaml", Environment())
    assert bool(problems) == bool(said) and all(said in f"{one.text}; {one.hint}" for one in problems), problems


def test_the_schema_of_the_reader_is_json() -> None:
    assert json.loads(msgspec.json.encode(READER.schema())) == READER.schema()


@pytest.mark.parametrize("name", ["first", "海报", "with 'quotes' and: colon", "true", "12"])
def test_the_example_is_right_and_its_script_leads_to_the_end(tmp_path: Path, name: str) -> None:
    files = READER.example(tmp_path / name)
    assert [file.name for file in files] == ["workflow.yaml", "script.jsonl"]
    assert READER.check(files[0], Environment()) == []
    replies = [json.loads(line)["reply"] for line in files[1].read_text(encoding="utf-8").splitlines()]
    assert len(replies) == len(REPLIES)
    graph = Registry([KIT]).load(KIT.name, find(READERS, str(tmp_path / name)).content)
    story = given(KIT.style, graph, *(AgentReplied(text=reply) for reply in replies))
    assert story.run is not None and story.run.ended is not None and story.run.ended.outcome == "completed"


def test_the_example_overwrites_nothing(tmp_path: Path) -> None:
    made = workflow(tmp_path)
    with pytest.raises(UsageError, match="already"):
        READER.example(made)
    assert (made / "workflow.yaml").read_text(encoding="utf-8") == RIGHT
    assert not (made / "script.jsonl").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        READER.example(tmp_path / "file" / "below")
    with pytest.raises(UsageError, match="cannot be the name of a workflow"):
        READER.example(tmp_path / ".hidden")


def test_the_article_of_the_graph_page_checks_clean(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "graph.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(name: article.*?)```", page, re.DOTALL)
    made = workflow(tmp_path, text, "article")
    assert READER.check(made / "workflow.yaml", Environment()) == []


def test_a_reason_names_where_its_transition_is_written(tmp_path: Path) -> None:
    graph = Registry([KIT]).load(KIT.name, find(READERS, str(workflow(tmp_path))).content)
    story = given(KIT.style, graph)
    before = story.run
    assert before is not None
    answered, finished, *_ = story.when(AgentReplied(text='{"content": "", "decisions": {"done": true}}')).events
    reasons = KIT.style.view.explain(KIT.style.evolve(before.state, before.length + 1, answered), finished).reasons
    assert [(one.text, one.source) for one in reasons] == [
        ("to two if done", "workflow.yaml:17:9"),
        ("to one if NOT done", "workflow.yaml:19:9"),
    ]


def test_a_folder_that_may_not_be_read_is_not_said_to_be_no_workflow() -> None:
    with somewhere_open() as folder:
        closed = folder / "haiku"
        closed.mkdir()
        (closed / "workflow.yaml").write_text(RIGHT, encoding="utf-8")
        closed.chmod(0o000)
        with without_privileges(), pytest.raises(UsageError, match="haiku cannot be read: Permission denied"):
            locate([READER], str(closed))
