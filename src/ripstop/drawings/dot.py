"""A diagram in the DOT language of Graphviz. Names never become ids; texts are quoted."""

from .diagram import Diagram, turns_in_words
from .lettering import clean

TAKEN, HERE = "#1d4fd7", "#d97706"


def dot(diagram: Diagram) -> str:
    journey = diagram.journey
    lines = [
        f"digraph {_text(diagram.name)} {{",
        f"    label={_text(diagram.name)}; labelloc=t; rankdir=TB; bgcolor=white; fontname=sans;",
        '    node [shape=box, style="rounded,filled", fillcolor="#f2f5fa", fontname=sans];',
        '    edge [fontname=monospace, fontsize=11, color="#6d7889"];',
        '    start [shape=point, width=0.15, label=""];',
        f"    start -> s{diagram.start};",
    ]
    for number, node in enumerate(diagram.nodes):
        if node.end:
            looks = [f"label={_text(node.name)}", "shape=doublecircle", 'fillcolor="#1a2230"', "fontcolor=white"]
        else:
            often = f" · {node.turns}×" if node.turns else ""
            looks = [f"label={_text(*filter(None, (node.name, node.agent + often)))}"]
            if node.nested:
                looks.append("peripheries=2")
        if journey and journey.here == number:
            looks += [f'color="{HERE}"', "penwidth=3"]
        elif node.turns:
            looks += [f'color="{TAKEN}"', "penwidth=2"]
        lines.append(f"    s{number} [{', '.join(looks)}];")
    for edge in diagram.edges:
        looks = []
        if edge.condition or edge.turns:
            looks.append(f"label={_text(*filter(None, (turns_in_words(edge.turns), edge.condition)))}")
        if edge.turns:
            looks += [f'color="{TAKEN}"', f'fontcolor="{TAKEN}"', "penwidth=2"]
        listed = f" [{', '.join(looks)}]" if looks else ""
        lines.append(f"    s{edge.source} -> s{edge.target}{listed};")
    return "\n".join([*lines, "}"]) + "\n"


def _text(*lines: str) -> str:
    """Lines in quotes. Graphviz knows escapes and HTML's names of characters, so both are written out."""
    escaped = (clean(line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines)
    return '"' + "\\n".join(escaped) + '"'
