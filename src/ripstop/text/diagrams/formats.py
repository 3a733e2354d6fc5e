"""The formats in which a diagram can be written."""

import re
from collections.abc import Callable

from .diagram import Diagram, Edge, turns_in_words
from .shapes import clean
from .svg import svg

# A diagram in the DOT language of Graphviz. Names never become ids; texts are quoted.


TAKEN_COLOUR, HERE = "#1d4fd7", "#d97706"


def dot(diagram: Diagram) -> str:
    journey = diagram.journey
    lines = [
        f"digraph {_dot_text(diagram.name)} {{",
        f"    label={_dot_text(diagram.name)}; labelloc=t; rankdir=TB; bgcolor=white; fontname=sans;",
        '    node [shape=box, style="rounded,filled", fillcolor="#f2f5fa", fontname=sans];',
        '    edge [fontname=monospace, fontsize=11, color="#6d7889"];',
        '    start [shape=point, width=0.15, label=""];',
        f"    start -> s{diagram.start};",
    ]
    for number, node in enumerate(diagram.nodes):
        if node.end:
            looks = [f"label={_dot_text(node.name)}", "shape=doublecircle", 'fillcolor="#1a2230"', "fontcolor=white"]
        else:
            often = f" · {node.turns}×" if node.turns else ""
            looks = [f"label={_dot_text(*filter(None, (node.name, node.agent + often)))}"]
            if node.nested:
                looks.append("peripheries=2")
        if journey and journey.here == number:
            looks += [f'color="{HERE}"', "penwidth=3"]
        elif node.turns:
            looks += [f'color="{TAKEN_COLOUR}"', "penwidth=2"]
        lines.append(f"    s{number} [{', '.join(looks)}];")
    for edge in diagram.edges:
        looks = []
        if edge.condition or edge.turns:
            looks.append(f"label={_dot_text(*filter(None, (turns_in_words(edge.turns), edge.condition)))}")
        if edge.turns:
            looks += [f'color="{TAKEN_COLOUR}"', f'fontcolor="{TAKEN_COLOUR}"', "penwidth=2"]
        listed = f" [{', '.join(looks)}]" if looks else ""
        lines.append(f"    s{edge.source} -> s{edge.target}{listed};")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_text(*lines: str) -> str:
    """Lines in quotes. Graphviz knows escapes and HTML's names of characters, so both are written out."""
    escaped = (clean(line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


# A diagram as a Mermaid flowchart, which many pages and editors draw.
#
# Names never become ids (`end` alone would break the chart), and every character of a text that Mermaid,
# Markdown or HTML could take as its own is written as a number.


_SPECIAL = re.compile(r"""["#<>&`*~\\\[\]{}|;:$^]|(?<![^\W_])_|_(?![^\W_])|^[-+=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]|//""")
TAKEN_LINK = "stroke:#1d4fd7,stroke-width:3px"


def mermaid(diagram: Diagram) -> str:
    journey = diagram.journey
    lines = ["flowchart TD", f"    accTitle: {_plain(diagram.name)}", f'    start((" ")) --> s{diagram.start}']
    for number, node in enumerate(diagram.nodes):
        if node.end:
            lines.append(f'    s{number}((("{_mermaid_text(node.name)}")))')
        else:
            often = f" · {node.turns}×" if node.turns else ""
            more = f"<br/>{_mermaid_text(node.agent)}{often}" if node.agent or often else ""
            opening, closing = ("[[", "]]") if node.nested else ("[", "]")
            lines.append(f'    s{number}{opening}"{_mermaid_text(node.name)}{more}"{closing}')
    lines += [_edge(edge) for edge in diagram.edges]
    lines.append("    classDef mark fill:#1a2230,stroke:#1a2230")
    lines.append("    class start mark")
    if journey:
        taken = [str(number + 1) for number, edge in enumerate(diagram.edges) if edge.turns]
        visited = [f"s{number}" for number, node in enumerate(diagram.nodes) if node.turns]
        if taken:
            lines.append(f"    linkStyle {','.join(taken)} {TAKEN_LINK}")
        if visited:
            lines += ["    classDef visited stroke:#1d4fd7,stroke-width:2px", f"    class {','.join(visited)} visited"]
        if journey.here is not None:
            lines += ["    classDef here stroke:#d97706,stroke-width:4px", f"    class s{journey.here} here"]
    return "\n".join(lines) + "\n"


def _edge(edge: Edge) -> str:
    shown = (f"({turns_in_words(edge.turns)})" if edge.turns else "", edge.condition)
    label = "<br/>".join(_mermaid_text(part) for part in shown if part)
    arrow = f'-->|"{label}"|' if label else "-->"
    return f"    s{edge.source} {arrow} s{edge.target}"


def _mermaid_text(text: str) -> str:
    """A text inside quotes."""
    return _SPECIAL.sub(lambda found: "".join(f"#{ord(char)};" for char in found[0]), clean(text)) or " "


def _plain(text: str) -> str:
    """A text that runs to the end of its line."""
    return re.sub(r"[#;{}%]", " ", clean(text)).strip() or "graph"


FORMATS: dict[str, Callable[[Diagram], str]] = {"mermaid": mermaid, "svg": svg, "dot": dot}
SUFFIXES = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid"}
"""Which format the name of a file asks for."""
