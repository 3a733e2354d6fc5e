"""A diagram as a Mermaid flowchart, which many pages and editors draw.

Names never become ids (`end` alone would break the chart), and every character of a text that Mermaid,
Markdown or HTML could take as its own is written as a number.
"""

import re

from .diagram import Diagram, Edge, turns_in_words
from .lettering import clean

_SPECIAL = re.compile(r"""["#<>&`*~\\\[\]{}|;:$^]|(?<![^\W_])_|_(?![^\W_])|^[-+=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]|//""")
TAKEN = "stroke:#1d4fd7,stroke-width:3px"


def mermaid(diagram: Diagram) -> str:
    journey = diagram.journey
    lines = ["flowchart TD", f"    accTitle: {_plain(diagram.name)}", f'    start((" ")) --> s{diagram.start}']
    for number, node in enumerate(diagram.nodes):
        if node.end:
            lines.append(f'    s{number}((("{_text(node.name)}")))')
        else:
            often = f" · {node.turns}×" if node.turns else ""
            more = f"<br/>{_text(node.agent)}{often}" if node.agent or often else ""
            opening, closing = ("[[", "]]") if node.nested else ("[", "]")
            lines.append(f'    s{number}{opening}"{_text(node.name)}{more}"{closing}')
    lines += [_edge(edge) for edge in diagram.edges]
    lines.append("    classDef mark fill:#1a2230,stroke:#1a2230")
    lines.append("    class start mark")
    if journey:
        taken = [str(number + 1) for number, edge in enumerate(diagram.edges) if edge.turns]
        visited = [f"s{number}" for number, node in enumerate(diagram.nodes) if node.turns]
        if taken:
            lines.append(f"    linkStyle {','.join(taken)} {TAKEN}")
        if visited:
            lines += ["    classDef visited stroke:#1d4fd7,stroke-width:2px", f"    class {','.join(visited)} visited"]
        if journey.here is not None:
            lines += ["    classDef here stroke:#d97706,stroke-width:4px", f"    class s{journey.here} here"]
    return "\n".join(lines) + "\n"


def _edge(edge: Edge) -> str:
    shown = (f"({turns_in_words(edge.turns)})" if edge.turns else "", edge.condition)
    label = "<br/>".join(_text(part) for part in shown if part)
    arrow = f'-->|"{label}"|' if label else "-->"
    return f"    s{edge.source} {arrow} s{edge.target}"


def _text(text: str) -> str:
    """A text inside quotes."""
    return _SPECIAL.sub(lambda found: "".join(f"#{ord(char)};" for char in found[0]), clean(text)) or " "


def _plain(text: str) -> str:
    """A text that runs to the end of its line."""
    return re.sub(r"[#;{}%]", " ", clean(text)).strip() or "graph"
