"""Drawings of workflows and runs. Pure: from a diagram to text; what is the same is drawn the same.

`diagram.py` says what is to be seen, `graph.py` makes it from a graph and its run, and each format
(`mermaid.py`, `dot.py`, `svg.py`) writes it down. Only SVG needs a layout, and `layout.py` is ours.
"""
