"""`undo-files`: bring back what a run removed or changed."""

import asyncio
from typing import TYPE_CHECKING

import click

from ripstop.text.plurals import count

from .options import Options, resolve_run, shared_options
from .terminal import can_ask, confirm, say, say_json

if TYPE_CHECKING:
    from ripstop.tools.snapshots.run_files import FileChange, FileChanges

DECLINED = 1
_UNDONE = "is as it was before the run already."


@click.command("undo-files", short_help="Bring back files that a run removed or changed.")
@click.argument("run", metavar="RUN")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--yes", is_flag=True, help="Bring them back without being asked.")
@shared_options
@click.pass_obj
def undo_files(options: Options, run: str, paths: tuple[str, ...], yes: bool) -> int:
    """Bring back files as they were before RUN first changed anything: all of them, or only those named by PATH.

    What the runs that RUN started have changed is brought back, too.

    What is there now is kept beside each file (NAME.before-undo-1). A file that somebody has changed after the run is
    brought back only if you name it. Files that the run made stay.

    \b
    Examples:
      ripstop undo-files build-k3f9x
      ripstop undo-files build-k3f9x src/main.py
    """
    return asyncio.run(_undo(options, run, paths, yes))


async def _undo(options: Options, named: str, paths: tuple[str, ...], yes: bool) -> int:
    from ripstop.app.run_files import file_changes, undo_files
    from ripstop.app.stores import open_engine

    async with open_engine(options.settings(), to_act=True) as engine:
        run_id = await resolve_run(engine, named)
        found = await file_changes(engine, run_id)
        chosen = _chosen(found, paths)
        if not options.as_json:
            _tell(found, chosen)
        if not chosen:
            if options.as_json:
                say_json({"run": run_id, "restored": [], "kept": {}})
            return 0
        if not yes and (options.as_json or not can_ask()):
            raise click.UsageError("Nothing was changed. Add --yes to bring files back without being asked.")
        if not yes and not confirm(f"Bring back {count(len(chosen), 'file')} in {found.workspace}?"):
            return DECLINED
        kept = await undo_files(engine, run_id, [one.path for one in chosen])
    if options.as_json:
        say_json({"run": run_id, "restored": [one.path for one in chosen], "kept": kept})
        return 0
    for path, name in kept.items():
        say(f"{path}: what was there is now {name}")
    say(f"Brought back {count(len(chosen), 'file')}.")
    return 0


def _chosen(found: "FileChanges", paths: tuple[str, ...]) -> "list[FileChange]":
    known = {one.path: one for one in found.changes}
    if undone := [path for path in paths if path in found.undone]:
        raise click.UsageError(f"{undone[0]!r} {_UNDONE}")
    if unknown := [path for path in paths if path not in known]:
        raise click.UsageError(f"The run neither removed nor changed {unknown[0]!r}.")
    if paths:
        return [known[path] for path in dict.fromkeys(paths)]
    return [one for one in found.changes if one.can_be_undone and not one.since]


def _tell(found: "FileChanges", chosen: "list[FileChange]") -> None:
    if found.problem:
        say(found.problem)
    elif not found.is_on_record:
        say("No change of a file is on record here. If it worked long ago, on another machine or in a folder that has")
        say("been moved since, what it changed is not known.")
    elif not found.changes and found.undone:
        say(f"What the run removed or changed {_UNDONE}")
    elif not found.changes:
        say("The run removed or changed no file that was there before it.")
    for one in found.changes:
        why = ""
        if not one.can_be_undone:
            why = "  (its old content is not kept)"
        elif one not in chosen:
            why = "  (changed by somebody else since; name it to bring it back)" if one.since else "  (not named)"
        say(f"{one.what:8} {one.path}{why}")
