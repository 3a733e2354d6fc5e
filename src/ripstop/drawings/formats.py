"""The formats in which a diagram can be written."""

from collections.abc import Callable

from .diagram import Diagram
from .dot import dot
from .mermaid import mermaid
from .svg import svg

FORMATS: dict[str, Callable[[Diagram], str]] = {"mermaid": mermaid, "svg": svg, "dot": dot}
SUFFIXES = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid"}
"""Which format the name of a file asks for."""
