"""Drawings of workflows and runs. Pure: from a diagram to text; what is the same is drawn the same.

`diagram.py` says what is to be seen, and each format (`mermaid.py`, `dot.py`, `svg.py`) writes it down. Each style
makes the diagrams of its definitions, and those of its runs from their chapters (`styles/<x>/drawing.py`). Only SVG
needs a layout, and `layout.py` is ours.
"""
