"""Documents, as people see a list of them."""

from ripstop.faces.cli.tables import ROOMY, print_table, table_width
from ripstop.faces.cli.words import first_line
from ripstop.services.handoff.view import DocumentView

STATUS_COLOURS = {"pending": "cyan", "in_progress": "magenta", "completed": "green", "terminated": "yellow"}


def show_documents(documents: list[DocumentView]) -> None:
    width = table_width()
    roomy = width >= ROOMY
    headings = ("document", "status", "owner", *(("since",) if roomy else ()), "task")
    rows = []
    for one in documents:
        paper = one.paper
        status = (paper.status, STATUS_COLOURS[paper.status])
        since = (paper.updated,) if roomy else ()
        task = f"(as before the last edit, which cannot be read) {paper.task}" if one.unread else paper.task
        rows.append((one.id, status, paper.owner, *since, first_line(task, 110 if one.unread else 60)))
    print_table(headings, rows, width)
