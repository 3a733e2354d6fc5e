"""Drawings of workflows and runs. Pure: from a diagram to text; what is the same is drawn the same.

`diagram.py` says what is to be seen; `graph.py` and `handoff.py` make it from what is written and what has happened in
their style, `stories.py` knows which of them a run needs; and each format
(`mermaid.py`, `dot.py`, `svg.py`) writes it down. Only SVG needs a layout, and `layout.py` is ours.
"""
