"""Documents that wait for an owner who may not exist, because an agent or a slip has named them."""

from collections.abc import Collection

from ripstop.definitions.problems import nearest
from ripstop.styles.handoff.rules import FINAL

from .view import DocumentView, Trouble


def unknown_owners(documents: Collection[DocumentView], roles: Collection[str]) -> list[Trouble]:
    """What to say of documents whose owner is neither a role of the folder nor in the history of any document.

    A person may give a task to another person who has done nothing here yet, so that alone is not worth a word: either
    a role has named the owner, or the name is nearly that of a role.
    """
    known = {*roles, *(entry.agent for document in documents for entry in document.paper.history)}
    found = []
    for document in documents:
        paper = document.paper
        near = nearest(paper.owner, roles)
        if paper.status in FINAL or paper.owner in known or not (near or paper.previous in roles):
            continue
        hint = f"; did you mean {near!r}?" if near else ""
        text = f"{document.id} waits for {paper.owner!r}, who is not a role here and has not worked on anything{hint}"
        found.append(Trouble(document.file, text))
    return found
