"""The draft in an agent's reply: all its words, unless it delivers them as a file of the project's records."""

from ..deliveries import WholeFile, deliveries

RECORDS, ARTIFACTS = ".cowork/", "artifacts/"


def draft_in(text: str) -> str:
    """Agents that know the name of the draft's file tend to write it above a fenced block with the draft in it."""
    files = [one for one in deliveries(text) if isinstance(one, WholeFile)]
    if len(files) == 1 and files[0].complete and files[0].path.removeprefix(RECORDS).startswith(ARTIFACTS):
        return files[0].content
    return text
