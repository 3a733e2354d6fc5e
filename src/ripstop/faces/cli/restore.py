"""`restore`: a backup takes the journal's place, and what may have happened since is asked."""

import asyncio
from pathlib import Path

import click

from ripstop.text.plurals import count

from .options import Options, shared_options
from .terminal import say, say_json


@click.command(short_help="Put a backup in place, and ask what happened since.")
@click.argument("copy", metavar="BACKUP", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--map",
    "pairs",
    multiple=True,
    metavar="OLD=NEW",
    help="Where a folder that runs put files into is now; repeatable.",
)
@shared_options
@click.pass_obj
def restore(options: Options, copy: Path, pairs: tuple[str, ...]) -> None:
    """Put a backup where the journal is, or was; on this machine or on another one.

    What happened after the backup was made is not on record. So every run that had not ended is held, with one question
    on the desk: whether it went on since. Nothing of it is done before you have answered;
    `answer --all restored CHOICE` answers for all of them:

    \b
      happened   what was open has been done since; later calls are asked about
      ask        you do not know: open calls and later ones are asked about
      continue   nothing has been done since, as after an orderly stop
      end        the run ends

    Asked about are calls of tools that are not pure, before they are made. Open ones are not asked about if their key,
    or a probe, keeps them from happening twice. Pure calls are simply made.

    Folders are those of the machine that the backup comes from: --map says where they are now. A journal that is there
    already is kept beside it, under another name. Stop the workers first.

    \b
    Examples:
      ripstop restore journal-2026-11-16.db
      ripstop restore journal.db --map /home/ann/shop=/srv/shop
      ripstop answer --all restored happened
      ripstop work
    """
    from ripstop.app.plugins import installed
    from ripstop.app.restore import restore_journal
    from ripstop.app.restoring import read_map

    done = asyncio.run(restore_journal(options.settings(), installed(), copy, read_map(pairs)))
    if options.as_json:
        kept = str(done.kept) if done.kept else None
        report = {"journal": str(done.path), "kept": kept, "runs": done.runs, "held": done.held, "mapped": done.mapped}
        return say_json(report)
    say(f"{done.path} holds {count(done.runs, 'run')} of {copy}.")
    if done.kept:
        say(f"The journal that was there is {done.kept} now.")
    if pairs:
        say(f"{count(done.mapped, 'run')} in it changed folders.")
    if not done.held:
        return say("All of them had ended.")
    say(f"{count(done.held, 'run')} had not ended, and may have gone on since. Say what became of them:")
    say(("  ripstop desk   ·   ripstop answer --all restored happened|ask|continue|end", "dim"))
    return None
