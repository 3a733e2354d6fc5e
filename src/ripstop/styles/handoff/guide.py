"""What an agent of another program must know to work on documents by editing their files."""

from .definition import END_MARKER
from .document import SECTIONS
from .state import FINAL, RULES

_TEXT = """\
# Working on hand-off documents

You{name} work on tasks that are Markdown files in `{folder}.workflows/`. Look there first, in
`{folder}.inbox/{agent}/` second.
Take a document whose `Current_Owner` is you and whose `Status` is `pending` or `in_progress`. {final} are final.

To change a document, edit its file and save it. ripstop reads your edit back, checks it and rewrites the file.

## What to write

| field | you may |
|---|---|
| `Status:` | change it as the table below says |
| `Current_Owner:` | change it together with a hand-over: the name of the agent that takes over |
| {texts} | change the text |
| `## History` | add one line at its end: `- YYYY-MM-DD HH:MM:SS {agent} what you did old→new` |
| `## Result` | add what came out of the task |
| sections and headers of your own | add them; they are kept |

Leave the title, the history so far and the other headers (`Previous_Owner`, `Created_At`, `Updated_At`,
`Interaction_Count`) as they are. ripstop keeps those headers and puts them right. The smallest legal edit is one
history line at the end of the file (`echo "- …" >> FILE`), or one new `Status:`.

## Which changes are legal

| you want to | from | to | only the owner |
|---|---|---|---|
{rules}

Accept a document before you complete it or hand it over: `pending→completed` is refused. At most 10 acceptances,
hand-overs and completions are allowed unless the document says otherwise.

## What happens to your edit

- It is taken over, and the file shows it; or it is refused, the file is put right, and your text is kept beside it in
  `FILE.refused-TIME-line-N`. Read the file again after you saved it.
- Do not answer with thanks or "OK": a courtesy ends a document. `{marker}` in a message ends it as well; what else the
  message says is kept as its result.

## Messages

Write a file `{folder}.inbox/NAME/ANY.md` to ask another agent for something:

    # Message
    From: {agent}
    To: NAME
    Time: 2026-01-31 12:00:00
    Type: normal

    What NAME shall do.

`Type: workflow_reply` with `Title: ID` answers about the document ID. If something that you sent is refused, the reason
is in `{folder}.inbox/{agent}/`.
"""


def guide(agent: str = "", folder: str = "") -> str:
    """The guide, for an agent of this name; `folder`: where the documents are, as the beginning of a path."""
    rows = "\n".join(
        f"| {action} | {', '.join(f'`{status}`' for status in rule.before)} | `{rule.after}` | "
        f"{'yes' if rule.by_owner else 'no'} |"
        for action, rule in RULES.items()
    )
    texts = ", ".join(f"`## {name}`" for name in SECTIONS if name != "History")
    return _TEXT.format(
        name=f" are {agent}. You" if agent else "",
        agent=agent or "YOUR-NAME",
        folder=folder,
        final=" and ".join(f"`{status}`" for status in FINAL),
        texts=texts,
        rules=rows,
        marker=END_MARKER,
    )
