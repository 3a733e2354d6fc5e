"""A diagram inside a page: classes instead of colours, and nothing that a strict content policy refuses."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from ripstop.styles.graph.drawing import draw_definition
from ripstop.text.diagrams.diagram import Diagram, Node
from ripstop.text.diagrams.inline_svg import inline_svg, shortened
from ripstop.text.diagrams.svg import svg
from tests.text.diagrams.diagrams import diagrams, review_loop
from tests.text.diagrams.test_runs import PAIR, THERE_AND_BACK, drawn, says

REFUSED = re.compile(r"#[0-9a-fA-F]{3}|fill=|stroke=|stroke-width=|style|\bid=|font-family|<script|\bon\w+=|data:")
CLASSES = {"d", "d-edge", "d-label", "d-node", "d-line", "d-head", "d-box", "d-inner", "d-halo", "d-start"}
CLASSES |= {"d-turns", "d-condition", "d-name", "d-agent", "d-end", "d-nested", "d-taken", "d-faint", "d-here"}
CLASSES |= {f"d-agent-{hue}" for hue in range(1, 7)}


def classes(picture: str) -> set[str]:
    root = ElementTree.fromstring(picture)
    return {name for one in root.iter() for name in (one.get("class") or "").split()}


def groups(picture: str, name: str) -> list[tuple[str, set[str]]]:
    """Title and classes of what has a class."""
    found = []
    for one in ElementTree.fromstring(picture).iter("g"):
        own = set((one.get("class") or "").split())
        if name in own:
            found.append((one.findtext("title") or "", own))
    return found


def test_a_run_has_what_was_taken_what_was_not_and_where_it_is() -> None:
    picture = inline_svg(drawn(PAIR, *THERE_AND_BACK[:3]))
    states = dict(groups(picture, "d-node"))
    assert "d-here" in states["judge (writer)"] and "d-faint" not in states["write (writer)"]
    assert states["END"] == {"d-node", "d-end", "d-faint"}
    ways = [own - {"d-edge"} for _, own in groups(picture, "d-edge")]
    assert ways.count({"d-taken"}) == 2 and ways.count({"d-faint"}) == 2
    assert [own for title, own in groups(picture, "d-label") if title == "workflow.yaml:7 done"] == [
        {"d-label", "d-taken"},
    ]
    assert "1 · 3" in picture and "d-halo" in classes(picture)


def test_a_definition_has_no_path() -> None:
    assert not classes(inline_svg(draw_definition(review_loop()))) & {"d-taken", "d-faint", "d-here", "d-halo"}


def test_has_no_ground_title_or_legend_and_says_what_it_shows() -> None:
    diagram = drawn(PAIR, *THERE_AND_BACK)
    picture, file = inline_svg(diagram), svg(diagram)
    assert "where it ended" in file and "where it ended" not in picture
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "img" and root.get("aria-label") == "article" and root.find("title") is None
    assert "write leads to judge if done (after turn 1, 3)." in (root.findtext("desc") or "")


def test_states_lead_where_the_page_wants() -> None:
    picture = inline_svg(drawn(PAIR, says(done=True)), link=lambda name: f'?where={name}&"')
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "group", "an image has no links in it"
    assert [one.get("href") for one in root.iter("a")] == ['?where=write&"', '?where=judge&"']


def test_an_agent_has_the_colour_that_the_page_gives_it() -> None:
    assert "d-agent-6" in classes(inline_svg(draw_definition(PAIR), hue=lambda agent: 6))
    many = Diagram("d", tuple(Node(str(at), f"agent {at}") for at in range(9)), (), 0)
    assert {f"d-agent-{hue}" for hue in range(1, 7)} <= classes(inline_svg(many))


def test_only_ways_taken_and_ways_out_of_where_it_is_are_left() -> None:
    whole = drawn(review_loop(), says(enough_sources=True))
    less = shortened(whole)
    assert [node.name for node in less.nodes] == ["research", "outline", "draft"]
    names = [node.name for node in less.nodes]
    assert [(names[edge.source], names[edge.target], edge.turns) for edge in less.edges] == [
        ("research", "outline", (1,)),
        ("outline", "draft", ()),
        ("outline", "research", ()),
    ]
    assert less.journey is not None and less.journey.here == 1 and less.start == 0
    assert shortened(draw_definition(PAIR)) == draw_definition(PAIR)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '" onload="x', "]]>", "\x00\u202e", "a\nb"])
def test_what_authors_wrote_is_text(text: str) -> None:
    picture = inline_svg(Diagram(text, (Node(text, text), Node(text, end=True)), (), 0, description=text))
    assert all(one.tag in ("svg", "g", "desc", "title", "rect", "text", "path", "circle") for one in _elements(picture))
    assert not any(name.startswith("on") for one in _elements(picture) for name in one.attrib)
    assert "\u202e" not in picture and "\x00" not in picture


def _elements(picture: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter())


@settings(deadline=None, max_examples=30)
@given(diagrams())
def test_is_xml_with_known_classes_and_nothing_that_a_page_refuses(diagram: Diagram) -> None:
    for one in (diagram, shortened(diagram)):
        picture = inline_svg(one)
        assert classes(picture) <= CLASSES
        bare = re.sub(r">[^<]*<|aria-label=(?:\"[^\"]*\"|'[^']*')", "><", picture)
        assert not REFUSED.search(bare)
