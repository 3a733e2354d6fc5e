"""Diagrams of workflows and runs.

`diagram.py` says what is to be seen, and each format (`formats.py`, `svg.py`) writes it down. Each style makes the
diagrams of its definitions, and those of its runs from their chapters (`styles/<x>/drawing.py`). Only SVG needs a
layout, and `layout.py` is our own.
"""
