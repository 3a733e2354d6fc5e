"""For tests of styles, journals, performers and workflows: public, and used by our own tests.

- `given(style, definition, …).when(fact).then(…)`: stories about pure styles
- `Errands`, `ErrandStyle`: a style that gives the commands its definition lists, and nothing else
- `JournalConformance`: what every store must do; subclass it
- `FakeClock`: time that passes when the test says so
- `FAILPOINTS`, `DOCUMENT_FAILPOINTS`, `BOARD_FAILPOINTS`, `COWORK_FAILPOINTS`, `failpoint`: named places where a test
  may kill the process
"""

from ripstop.engine.failpoints import BOARD_FAILPOINTS, COWORK_FAILPOINTS, DOCUMENT_FAILPOINTS, FAILPOINTS, failpoint

from .clock import FakeClock
from .conformance import JournalConformance
from .scenarios import Given, ScenarioOutcome, given
from .stub_style import ERRANDS, Errands, ErrandStyle

__all__ = [
    "BOARD_FAILPOINTS",
    "COWORK_FAILPOINTS",
    "DOCUMENT_FAILPOINTS",
    "ERRANDS",
    "FAILPOINTS",
    "ErrandStyle",
    "Errands",
    "FakeClock",
    "Given",
    "JournalConformance",
    "ScenarioOutcome",
    "failpoint",
    "given",
]
