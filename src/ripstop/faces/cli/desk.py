"""`desk`: everything that waits for a person, in one place."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ripstop.kernel.desk_kinds import DOUBTED, HANDOFF, KINDS, SET_ASIDE, STUCK

from .options import Options, shared_options
from .terminal import console_for, say, say_json
from .words import answer_command, answer_words, choices_line, field_options, field_words, local_time

if TYPE_CHECKING:
    from ripstop.runtime.engine import Engine
    from ripstop.views import DeskItem, GivenAnswer

CHANGES_SHOWN = 2000
"""Lines of a difference that are shown; a terminal takes long for more."""
ANSWERS_SHOWN = 10
"""Earlier answers; `--json` has all of them."""
LINES_SHOWN = 40
"""Of a conversation; `--json` has all of them."""


@click.command(short_help="List what waits for a person, over all runs.")
@click.argument("item", metavar="[ID]", required=False)
@click.option("--to", metavar="NAME", help="Only what is meant for this role or person, or for anyone.")
@click.option("--kind", type=click.Choice(KINDS), metavar="KIND", help=f"One of: {', '.join(KINDS)}.")
@click.option("--run", "run_id", metavar="RUN", help="Only what this run and those that it started wait for.")
@shared_options
@click.pass_obj
def desk(options: Options, item: str | None, to: str | None, kind: str | None, run_id: str | None) -> None:
    """List everything that waits for a person, over all runs: reviews, questions, effects in doubt, guards that ask,
    conversations that were handed over, and runs that are stuck or set aside, each with what can be done.

    With ID, one of them with the text behind it: in a terminal a document is rendered, and one that you have seen
    before is shown as what has changed since. Written to a file or a pipe, it is there as it is.

    \b
    Examples:
      ripstop desk
      ripstop desk --kind review
      ripstop desk draft-k3f9x/12
      ripstop desk draft-k3f9x/12 --json | jq -r '.[0].document'
    """
    from ripstop.opening import open_engine
    from ripstop.settings.settings_file import store_path

    async def look() -> "list[DeskItem]":
        async with open_engine(options.settings(), or_empty=True) as engine:
            found = await _items(engine, item, to, run_id, options.as_json or item is not None)
            wanted = [one for one in found if kind in (None, one.kind) and item in (None, one.id)]
            if item and not wanted:
                raise await _not_open(engine, item)
            return wanted

    items = asyncio.run(look())
    if options.as_json:
        return say_json([_plain(one) for one in items])
    if not items:
        narrowed = kind or run_id or to
        if narrowed:
            return say("Nothing of that waits for you. `ripstop desk` lists all.")
        path = store_path(options.settings().store)
        return say(f"Nothing waits for you.{'' if path.exists() else f' There is no journal at {path} yet.'}")
    for one in items:
        show_item(one, whole=item is not None)
        say()
    return None


async def _items(
    engine: "Engine", item: str | None, to: str | None, run_id: str | None, with_texts: bool
) -> "list[DeskItem]":
    from ripstop.runtime.ports import DeskQuery
    from ripstop.views import desk_item, halted_runs

    from .pages import all_questions

    named = run_id or ((item.rpartition("/")[0] or item) if item else "")
    info = await engine.journal.run(named) if named else None
    if run_id and info is None:
        raise await engine.not_found(run_id)
    root = info.root if info else ""
    questions = await all_questions(engine, DeskQuery(to=to, root=root))
    texts = [one for one in questions if item in (None, f"{one.run_id}/{one.number}")]
    found = [await desk_item(engine, one, with_texts) for one in texts]
    found += await halted_runs(engine, root)
    return [one for one in found if not run_id or one.run == run_id or one.run.startswith(f"{run_id}.")]


async def _not_open(engine: "Engine", item: str) -> Exception:
    """Why an item is not on the desk; if it was answered, by whom and when."""
    from ripstop.views import answers_in

    run_id, _, number = item.rpartition("/")
    if await engine.journal.run(run_id):
        for _, given in answers_in(await engine.journal.read(run_id)):
            if str(given.to) == number:
                return click.UsageError(f"{item} is not an open question any more: {given_words(given)}.")
    return click.UsageError(f"{item} is not an open question. `ripstop desk` lists those that are.")


def given_words(given: "GivenAnswer") -> str:
    """Who answered what, and when, on one line."""
    said = answer_words(given.choice, given.text, given.fields)
    return f"{given.by or 'somebody'} answered at {local_time(given.at)}: {said}"


def show_item(one: "DeskItem", whole: bool, most: int | None = None, with_command: bool = True) -> None:
    """Show what waits, and what can be done about it.

    Args:
        whole: With the text behind it, and all fields.
        most: Lines that are shown of a document or, if it has changed, of what has changed; `None`: all of both.
        with_command: With the commands that answer it.
    """
    from .paragraphs import print_indented

    console = console_for()
    say((one.id, "bold"), f"  {local_time(one.asked)}  ", (one.kind, "magenta"), f"  {one.title}" if one.title else "")
    if len(one.family) > 1:
        say((f"  {' ← '.join(one.family)}", "dim"))
    if one.to:
        say((f"  for {one.to}", "dim"))
    if whole:
        _show_texts(one, most)
    print_indented(console, 2, one.question)
    if whole:
        for name, field in one.fields.items():
            print_indented(console, 2, (f"field {name}  ", "dim"), field_words(field))
    if with_command:
        _show_commands(one, whole)


def _show_texts(one: "DeskItem", most: int | None) -> None:
    from .paragraphs import print_indented
    from .previews import print_difference, print_document

    console, rest = console_for(), f"ripstop desk {one.id}"
    for given in one.answers[-ANSWERS_SHOWN:]:
        print_indented(console, 2, (given_words(given), "dim"))
    for line in one.talk[-LINES_SHOWN:]:
        print_indented(console, 4, (f"{line.by}:  ", "dim" if line.is_reply else "bold"), _indented(line.text))
    for record in one.evidence if one.kind != DOUBTED else ():  # the question itself names the call, and what it got
        print_indented(console, 4, (f"record {record.number}  ", "dim"), record.text)
    if one.document is not None and (most is None or not one.difference):
        print_document(console, one.document, most, rest)
    if one.difference is not None:
        say(
            ("  Changed since the draft that was answered last:" if one.difference else "  Nothing has changed.", "dim")
        )
        print_difference(console, one.difference, most or CHANGES_SHOWN, rest if most else f"{rest} --json")


def _indented(text: str) -> str:
    """Further lines of a text are set off, so that none of them looks like what somebody else has said."""
    return text.replace("\n", "\n  ")


def _show_commands(one: "DeskItem", whole: bool) -> None:
    if one.kind == STUCK:
        return say(
            (f"  ripstop fork {one.run} --at N   ·   ripstop log {one.run}   ·   ripstop cancel {one.run}", "dim")
        )
    if one.kind == SET_ASIDE:
        return say((f"  ripstop resume {one.run}   ·   ripstop cancel {one.run}", "dim"))
    if one.kind == HANDOFF:
        say((f"  ripstop answer {one.id} TEXT   ·   ripstop answer {one.id} release", "dim"))
        return say((f"  ripstop chat --as-desk {one.run}", "dim"))
    needed = {name: field for name, field in one.fields.items() if whole or field.required}
    say((f"  ripstop {answer_command(one.id, one.choices, field_options(needed))}", "dim"))
    for line in choices_line(one.choices):
        say((f"  {line}", "dim"))
    return None


def _plain(item: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(item)
    return {**plain, "choices": list(plain["choices"]), "labels": plain["choices"]}
