"""What the command line calls the next steps that messages name (`ripstop.kernel.advice`).

Faces that are not a command line use it where they tell people to go to a terminal.
"""

import shlex

from ripstop.app.plugins import installed
from ripstop.kernel.advice import Advice, NextStep

COMMANDS = {
    "act": "act {}",
    "doctor": "doctor",
    "fork": "fork {} --at N",
    "install_model": "model install",
    "restore": "restore BACKUP",
    "resume": "resume {}",
    "run": "run",
    "trust": "trust {}",
    "trust_address": "trust --base-url {}",
    "trust_server": "tools trust {}",
    "trust_workflow": "trust CONFIG",
    "verify": "verify",
}
"""By the action; `{}` is its subject. Styles have commands of their own: `Plugin.steps`."""
OF_RUNS = ("fork", "resume")
"""Actions whose subject is a run's id, in which a session can have put anything."""


def in_commands(text: str) -> str:
    """A message as the command line says it."""
    return text.said_with(command_of) if isinstance(text, Advice) else text


def command_of(step: NextStep) -> str:
    """The command for a step; empty if there is none."""
    known = {action: named for plugin in installed().all for action, named in plugin.steps.items()} | COMMANDS
    named = known.get(step.action)
    subject = shlex.quote(step.subject) if step.subject and step.action in OF_RUNS else step.subject
    return f"ripstop {named.format(subject)}".rstrip() if named else ""
