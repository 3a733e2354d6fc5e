"""For tests of styles, journals, performers and workflows: public, and used by our own tests.

- `given(style, definition, …).when(fact).then(…)`: stories about pure styles
- `Errands`, `ErrandStyle`: a style that gives the commands its definition lists, and nothing else
- `JournalConformance`: what every store must do; subclass it
- `uncertain(journal, choose)`: the journal, with replies to appends that get lost
- `FakeClock`: time that passes when the test says so
- `FAILPOINTS`, `failpoint`: named places where a test may kill the process; those of a style are in its `Plugin`
"""

from ripstop.engine.failpoints import FAILPOINTS, failpoint

from .clock import FakeClock
from .conformance import JournalConformance
from .scenarios import Given, ScenarioOutcome, given
from .stub_style import ERRANDS, Errands, ErrandStyle
from .uncertain_journal import Fate, uncertain

__all__ = [
    "ERRANDS",
    "FAILPOINTS",
    "ErrandStyle",
    "Errands",
    "FakeClock",
    "Fate",
    "Given",
    "JournalConformance",
    "ScenarioOutcome",
    "failpoint",
    "given",
    "uncertain",
]
