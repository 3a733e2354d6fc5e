"""For tests of styles, journals, performers and workflows: public, and used by our own tests.

- `given(style, definition, …).when(fact).then(…)`: stories about pure styles
- `Errands`, `ErrandStyle`: a style that gives the commands its definition lists, and nothing else
- `JournalConformance`: what every store must do; subclass it
- `FakeClock`: time that passes when the test says so
- `FAILPOINTS`, `DOCUMENT_FAILPOINTS`, `reach`: named places where a test may kill the process
"""

from ripstop.runtime.failpoints import DOCUMENT_FAILPOINTS, FAILPOINTS, reach

from .clock import FakeClock
from .conformance import JournalConformance
from .errands import ERRAND_EVENTS, Errands, ErrandStyle
from .stories import Given, Told, given

__all__ = [
    "DOCUMENT_FAILPOINTS",
    "ERRAND_EVENTS",
    "FAILPOINTS",
    "ErrandStyle",
    "Errands",
    "FakeClock",
    "Given",
    "JournalConformance",
    "Told",
    "given",
    "reach",
]
