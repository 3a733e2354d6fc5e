"""Templates: one pass, and nothing unknown slips through."""

from collections.abc import Callable
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.styles.graph.template import TemplateError, parse, render

NAMES = frozenset({"initial_message", "last_agent_name", "last_agent_content"})
VALUES = {name: itemgetter(name) for name in NAMES}


def rendered(source: str, **values: str) -> str:
    return render(parse(source, NAMES), VALUES, dict.fromkeys(NAMES, "") | values)


@pytest.mark.req("S1-33", "S1-35", "S1-40", "S1-43", "S1-44")
@pytest.mark.parametrize(
    ("source", "agent", "text"),
    [
        ("Do {{initial_message}}.", "", "Do soup."),
        ("{{ initial_message }}", "", "soup"),
        ('{% if last_agent_name == "bob" %}A{% else %}B{% endif %}', "bob", "A"),
        ('{% if last_agent_name == "bob" %}A{% else %}B{% endif %}', "eve", "B"),
        ("{% if last_agent_name == 'bob' %}A{% endif %}", "eve", ""),
        (
            '{% if last_agent_name == "bob" %}\nA {{initial_message}}\n{% else %}\nB\n{% endif %}\n!',
            "bob",
            "\nA soup\n\n!",
        ),
        (
            '{% if last_agent_name == "b" %}1{% endif %}{% if last_agent_name == "b" %}2{% else %}3{% endif %}',
            "b",
            "12",
        ),
        ('{"a": {"b": 1}}', "", '{"a": {"b": 1}}'),
    ],
)
def test_renders(source: str, agent: str, text: str) -> None:
    assert rendered(source, initial_message="soup", last_agent_name=agent) == text


def test_text_from_an_agent_is_never_expanded() -> None:
    said = '{{initial_message}} {% if last_agent_name == "x" %}'
    assert rendered("{{last_agent_content}}", last_agent_content=said, initial_message="secret") == said


@pytest.mark.req("S1-41", "S1-42")
@pytest.mark.parametrize(
    ("source", "offset", "text"),
    [
        ("a {{gaol}}", 2, "there is no variable 'gaol'"),
        ("{% for x in y %}", 0, "not supported"),
        ('{% if turn_count == "1" %}a{% endif %}', 0, "not supported"),
        ('x{% if last_agent_name == "b" %}a', 1, "no {% endif %}"),
        ("a{% endif %}", 1, "no {% if %}"),
        ("{% else %}", 0, "no {% if %}"),
    ],
)
def test_refuses_what_it_does_not_know(source: str, offset: int, text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse(source, NAMES)
    assert caught.value.offset == offset
    assert text in str(caught.value)


@given(st.text(alphabet='ab{}% \nif"=_else', max_size=60))
def test_any_text_is_read_or_refused(source: str) -> None:
    try:
        pieces = parse(source, NAMES)
    except TemplateError as error:
        assert 0 <= error.offset <= len(source)
    else:
        assert isinstance(render(pieces, VALUES, dict.fromkeys(NAMES, "")), str)


def test_works_out_only_the_values_that_are_used() -> None:
    asked: list[str] = []

    def value(name: str) -> Callable[[str], str]:
        def work_out(of: str) -> str:
            asked.append(name)
            return of

        return work_out

    values = {name: value(name) for name in NAMES}
    pieces = parse(
        '{% if last_agent_name == "a" %}{{initial_message}}{% else %}{{last_agent_content}}{% endif %}', NAMES
    )
    assert render(pieces, values, "a") == "a"
    assert asked == ["last_agent_name", "initial_message"]
