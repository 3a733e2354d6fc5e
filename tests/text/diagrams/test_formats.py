"""Every format stays well formed, whatever stands in names and conditions."""

import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.styles.graph.drawing import draw_definition
from ripstop.text.diagrams.diagram import Diagram, Edge, Journey, Node, turns_in_words
from ripstop.text.diagrams.formats import FORMATS, dot, mermaid
from ripstop.text.diagrams.shapes import clean, width, wrap
from ripstop.text.diagrams.svg import MARGIN, SMALL, svg
from tests.text.diagrams.diagrams import TEXTS, diagrams, review_loop

SVG = "{http://www.w3.org/2000/svg}"
QUOTED_DOT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
MERMAID_LINE = re.compile(
    r"""flowchart TD|accTitle: [^#;{}%\n]+|start\(\(" "\)\) --> s\d+|s\d+\["[^"\n]*(<br/>[^"\n]*)?"\]"""
    r"""|s\d+\(\(\("END"\)\)\)|s\d+ -->(\|"[^"\n]+"\|)? s\d+"""
    r"""|classDef \w+ [\w:#,-]+|class [\w,]+ \w+|linkStyle [\d,]+ \S+"""
)


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(diagrams())
def test_svg_is_xml_and_says_what_it_shows(diagram: Diagram) -> None:
    root = ElementTree.fromstring(svg(diagram))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and description is not None and (description.text or "").startswith("Starts in")
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(diagrams())
def test_mermaid_has_only_lines_that_it_knows(diagram: Diagram) -> None:
    for line in mermaid(diagram).splitlines():
        assert MERMAID_LINE.fullmatch(line.strip()), line


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_a_text_comes_out_of_mermaid_as_it_went_in(text: str) -> None:
    drawn = mermaid(Diagram("d", (Node("a", "b"),), (Edge(0, 0, text),), 0))
    found = re.search(r'\|"(.*)"\|', drawn)
    told = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), found[1]) if found else ""
    assert told.strip() == clean(text)
    assert not found or not re.search(r'[<>"`*\\{}\[\]:]', found[1])


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(diagrams())
def test_dot_has_its_texts_in_quotes(diagram: Diagram) -> None:
    rest = QUOTED_DOT.sub("", dot(diagram))
    assert '"' not in rest and "\\" not in rest
    assert rest.isascii()


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@settings(deadline=None, max_examples=20)
@given(diagrams())
def test_graphviz_reads_our_dot(diagram: Diagram) -> None:
    read = subprocess.run(["dot", "-Tcanon"], input=dot(diagram).encode(), capture_output=True, timeout=60)
    assert read.returncode == 0 and read.stderr == b""


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_graph_is_drawn_the_same(format: str) -> None:
    assert FORMATS[format](draw_definition(review_loop())) == FORMATS[format](draw_definition(review_loop()))


def test_end_is_no_name_that_mermaid_could_trip_over() -> None:
    drawn = mermaid(draw_definition(review_loop()))
    assert not re.search(r"(?i)(^|\s)end\b", drawn)
    assert '((("END")))' in drawn


def test_a_long_condition_is_cut_in_the_picture_and_whole_when_pointed_at() -> None:
    long = " AND ".join(f"condition_number_{n}" for n in range(40))
    drawn = svg(Diagram("d", (Node("a"), Node("b")), (Edge(0, 1, long, 12),), 0, source="workflow.yaml"))
    assert f"<title>workflow.yaml:12 {long}</title>" in drawn
    assert max(len(text.text or "") for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")) < 40
    assert "…</text>" in drawn


def test_all_texts_of_the_review_loop_are_in_the_picture() -> None:
    shown = "".join(ElementTree.fromstring(svg(draw_definition(review_loop()))).itertext())
    for text in ("fact_check", "errors == 0", "approved AND score &gt;= 9".replace("&gt;", ">"), "At most 10 turns."):
        assert text in shown


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(60, 300), st.integers(1, 4), st.booleans())
def test_wrapped_lines_are_as_few_and_as_short_as_was_asked(text: str, most: int, lines: int, mono: bool) -> None:
    found = wrap(text, 12, most, lines, mono)
    assert len(found) <= lines
    assert all(width(line, 12, mono) <= most for line in found)
    if not found or not found[-1].endswith("…"):
        assert "".join(found).replace(" ", "") == clean(text).replace(" ", "")


def test_chinese_is_twice_as_wide_and_breaks_without_spaces() -> None:
    assert width("需求", 12, monospaced=True) > 1.5 * width("ab", 12, monospaced=True)
    assert len(wrap("需求文档更新完成以后才能继续往下走" * 2, 12, 120, 9)) > 2


def test_breaks_stand_before_and_or() -> None:
    found = wrap("needs_revision AND satisfaction_score < 8 AND NOT approved", 12, 200, 3, monospaced=True)
    assert found == ("needs_revision", "AND satisfaction_score < 8", "AND NOT approved")


@pytest.mark.parametrize("words", range(0, 60, 2))
def test_bold_lines_leave_room_at_the_right(words: int) -> None:
    journey = Journey("review-k3f9x", "completed", "word " * words, ended=True)
    drawn = ElementTree.fromstring(svg(replace(draw_definition(review_loop()), journey=journey)))
    texts = [text for text in drawn.iter("{http://www.w3.org/2000/svg}text") if text.get("font-weight") == "600"]
    told = [text.text or "" for text in texts if text.get("x") == "0"]
    assert told[0].startswith("run review-k3f9x")
    room = float(drawn.get("width", "0")) - 2 * MARGIN
    assert all(width(line, SMALL) * 1.1 <= room for line in told)


def test_many_turns_are_named_by_the_first_the_last_and_their_number() -> None:
    assert turns_in_words((1, 3)) == "1 · 3"
    assert turns_in_words(tuple(range(1, 40, 2))) == "1 · 3 · 5 · 7 … 39 (20×)"
