"""Documents that a step changed: what a style projects from a run now, compared with what it did before."""

from typing import Any

from ripstop.kernel.run import Run
from ripstop.kernel.style import Document, StyleKit


def changed_documents(kit: StyleKit, before: Run[Any] | None, after: Run[Any]) -> list[Document]:
    was = () if before is None else kit.style.documents(before)
    found = kit.style.documents(after)
    if was == found:
        return []
    old = {(one.collection, one.key): one for one in was}
    new = {(one.collection, one.key): one for one in found}
    for place, document in new.items():
        if document.collection not in kit.collections:
            raise ValueError(f"The style {kit.name!r} has no collection {place[0]!r}.")
    changed = [document for place, document in new.items() if old.get(place) != document]
    gone = [Document(*place, None) for place in old if place not in new]
    return [*changed, *gone]
