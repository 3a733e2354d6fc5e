"""The draft in an agent's reply: all its words, unless it delivers them as a file of the project's records."""

import re

from ..deliveries import WholeFile, deliveries

_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)))
_HAS_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What would act on a terminal that shows the file: all control characters but tab, line feed and carriage return."""
RECORDS, ARTIFACTS = ".cowork/", "artifacts/"


def draft_in(text: str) -> str:
    """Agents that know the name of the draft's file tend to write it above a fenced block with the draft in it."""
    files = [one for one in deliveries(text) if isinstance(one, WholeFile)]
    if len(files) == 1 and files[0].complete and files[0].path.removeprefix(RECORDS).startswith(ARTIFACTS):
        text = files[0].content
    return text.translate(_CONTROL) if _HAS_CONTROL.search(text) else text
