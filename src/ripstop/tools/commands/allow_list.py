"""Which programs agents may run. The list helps agents to the right tool; the sandbox is what protects.

An interpreter on the list can run anything, in the sandbox. So the list is short of what has no place in a project's
work (shells, deleting, signals, the system's own tools), and a refusal says what to use instead.

- A program is named, not given by a path: it is looked for in fixed folders, none of which is in the project.
- The exceptions are programs that the project has installed for itself: `.venv/bin/NAME` and `node_modules/.bin/NAME`.
- The name of the program is compared, nothing else: `npm run format` and `git log --grep rm` are what they are.
- Programs that only start another one (`env`, `timeout`, `xargs`, `find -exec`, `sh -c`) are looked through, so that an
  agent that writes `env rm` is told what to do instead. What they hide otherwise is the sandbox's affair.
"""

import os
import re
import shlex
from pathlib import Path

from msgspec import Struct

from ripstop.engine.performers import Refused

ALLOWED = (
    # languages, and what builds and tests in them
    *("python", "python3", "pytest", "ruff", "mypy", "black", "node", "npm", "npx", "tsc", "eslint", "prettier"),
    *(
        "deno",
        "bun",
        "yarn",
        "pnpm",
        "cargo",
        "rustc",
        "go",
        "gofmt",
        "java",
        "javac",
        "mvn",
        "gradle",
        "make",
        "cmake",
    ),
    *("ninja", "gcc", "g++", "cc", "c++", "clang", "ruby", "rake", "bundle", "perl", "php", "composer", "dotnet"),
    *("lua", "Rscript", "ghc", "cabal", "stack", "elixir", "mix", "swift", "tox", "nox", "uv", "poetry"),
    # the history, as far as it is read
    "git",
    # looking at files
    *("ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "find", "tree", "file", "stat", "du"),
    *("diff", "cmp", "sort", "uniq", "cut", "tr", "nl", "od", "xxd", "awk", "sed", "jq", "echo", "printf", "pwd"),
    *("true", "false", "test", "date", "basename", "dirname", "realpath", "sha256sum", "md5sum", "which", "env"),
    # making files
    *("mkdir", "touch", "cp", "mv", "tar", "gzip", "gunzip", "zip", "unzip", "patch"),
)
PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
INSTALLED = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Folders in the workspace whose programs a path can name."""
MAX_WORDS = 1000
MAX_CHARACTERS = 100_000
"""Of all words together; the kernel allows 128 KiB for one."""

_NEVER = {
    **dict.fromkeys(("rm", "rmdir", "unlink", "shred"), "To replace a file, use write_file; files are not deleted."),
    **dict.fromkeys(
        ("sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh", "busybox", "toybox", "pwsh", "eval", "exec", "cmd"),
        "There is no shell: name the program and its arguments, and call run_command once for each.",
    ),
    **dict.fromkeys(
        ("kill", "pkill", "killall", "skill", "xkill", "fuser"), "What a command starts ends with the command itself."
    ),
    **dict.fromkeys(
        ("sudo", "su", "doas", "pkexec", "runuser", "setpriv", "chroot", "unshare", "nsenter", "bwrap"),
        "Commands run with the rights that they have.",
    ),
    **dict.fromkeys(
        ("curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp"),
        "Commands have no network.",
    ),
    **dict.fromkeys(
        ("nohup", "setsid", "disown", "at", "batch", "crontab", "systemd-run", "screen", "tmux", "daemonize"),
        "A command ends before its time limit, and nothing goes on after it.",
    ),
    **dict.fromkeys(("vi", "vim", "nano", "emacs", "ed", "ex"), "To change a file, use edit_file or write_file."),
}
"""Why a program is not allowed, where something better can be said than which ones are."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class CommandRules(Struct, frozen=True, kw_only=True):
    """What a user's settings say about commands (`[commands]`)."""

    allowed: tuple[str, ...] = ALLOWED
    seconds: float = 120.0
    """The time limit where a call names none, and the longest that a call can name."""
    read: tuple[str, ...] = ()
    """More folders that commands can read; programs are looked for in their `bin`."""
    unconfined: bool = False
    """Whether commands run without a sandbox where there is none."""


def program(command: list[str], rules: CommandRules, folder: Path, workspace: Path) -> str:
    """The file of the program that a command names. Raises `Refused`.

    `folder`: where the command is run; `workspace`: the folder of the agent, or of all agents.
    """
    check_words(command)
    named = command[0]
    if "/" in named:
        return _installed(named, folder, workspace)
    if named not in rules.allowed:
        raise _not_allowed(named, rules)
    for started in started_programs(command):
        if started not in rules.allowed:
            raise _not_allowed(started, rules)
    for place in search_path(rules):
        found = os.path.join(place, named)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    raise Refused(
        f"The program {named!r} is allowed, but not installed in {', '.join(search_path(rules))}. A program of the "
        f"project is named by its path: {INSTALLED[0]}/{named} or {INSTALLED[-1]}/{named}.",
        "agent",
    )


# What a program starts that only starts others

_TAKES_VALUE = {
    "env": ("-u", "--unset", "-C", "--chdir"),
    "nice": ("-n", "--adjustment"),
    "ionice": ("-c", "-n", "--class", "--classdata"),
    "timeout": ("-k", "-s", "--kill-after", "--signal"),
    "stdbuf": ("-i", "-o", "-e", "--input", "--output", "--error"),
    "xargs": ("-I", "-L", "-n", "-P", "-s", "-d", "-a", "-E", "--max-args", "--max-procs", "--delimiter", "--arg-file"),
    "time": ("-f", "-o", "--format", "--output"),
    "nohup": (),
    "setsid": (),
    "command": (),
}
"""Options with a word of their own, of programs that start the first word which is not theirs."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SPLIT = re.compile(r"-[a-zA-Z0]*?S(.+)?|--split-string(?:=(.*))?", re.DOTALL)
"""`env` takes a whole command as one word: behind the option, or as its value."""
_FINDS = ("-exec", "-execdir", "-ok", "-okdir")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
MAX_LOOKED_THROUGH = 10


def started_programs(command: list[str]) -> list[str]:
    """The names of the programs that a command starts besides its own, as far as its words say so."""
    return _started(command, MAX_LOOKED_THROUGH)


def _started(command: list[str], most: int) -> list[str]:
    found: list[str] = []
    for depth in range(most):
        program, words = os.path.basename(command[0]), command[1:]
        if program == "find":
            found += ["rm"] if "-delete" in words else []
            for place, word in enumerate(words[:-1]):
                if word in _FINDS:
                    inner = words[place + 1 :]
                    found += [os.path.basename(inner[0]), *_started(inner, most - depth - 1)]
            return found
        if program in _SHELLS:
            inner = words[words.index("-c") + 1 :] if "-c" in words else []
            command = _words(inner[0]) if inner else []
        elif program in _TAKES_VALUE:
            command = _after_options(program, words)
        else:
            return found
        if not command:
            return found
        found.append(os.path.basename(command[0]))
    return found


def _after_options(program: str, words: list[str]) -> list[str]:
    """The command that is left when the words of the program that starts it are taken away."""
    waiting = list(words)
    while waiting:
        word = waiting[0]
        if program == "env" and (split := _SPLIT.fullmatch(word)):
            given = waiting[1:] if split[1] is None and split[2] is None else [split[1] or split[2] or "", *waiting[1:]]
            return [*_words(" ".join(given[:1])), *given[1:]]
        if word == "--":
            waiting = waiting[1:]
            break
        if not word.startswith("-") and not (program == "env" and _ASSIGNMENT.fullmatch(word)):
            break
        waiting = waiting[2 if word in _TAKES_VALUE[program] else 1 :]
    while program == "env" and waiting and _ASSIGNMENT.fullmatch(waiting[0]):
        waiting = waiting[1:]
    return waiting[1:] if program == "timeout" else waiting


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def search_path(rules: CommandRules) -> list[str]:
    """The folders in which programs are looked for."""
    more = [str(Path(folder).expanduser() / "bin") for folder in rules.read]
    return [*PATH, *more]


def as_list(command: object) -> Refused | None:
    """What to say about a command that is one text, not a list of words; nothing if it is a list."""
    if not isinstance(command, str):
        return None
    words = _words(command[:200])
    return Refused(
        f"`command` is a list of words: the program, then each argument; there is no shell. Write {words!r} instead.",
        "agent",
    )


def check_words(command: list[str]) -> None:
    """Raise `Refused` for a command that no program could be started with."""
    if not command or not command[0].strip():
        raise Refused("`command` is empty. Name a program and its arguments, such as ['python3', 'x.py'].", "agent")
    if len(command) > MAX_WORDS or sum(map(len, command)) > MAX_CHARACTERS:
        raise Refused(f"`command` is too long: at most {MAX_WORDS} words, {MAX_CHARACTERS} characters.", "agent")
    if any("\0" in word for word in command):
        raise Refused("`command` has a NUL character in it, which no argument can have.", "agent")
    try:
        "".join(command).encode()
    except UnicodeEncodeError as error:
        raise Refused("`command` has a character in it that is not Unicode.", "agent") from error


def _installed(named: str, folder: Path, workspace: Path) -> str:
    """A program that the project has installed for itself."""
    parts = named.split("/")
    places = [place for place in INSTALLED if tuple(Path(named).parts[:-1])[-2:] == Path(place).parts]
    if named.startswith("/") or ".." in parts or not places or not _NAME.fullmatch(parts[-1]):
        raise Refused(
            f"The program {named[:100]!r} is given by a path. Name a program that is installed (such as 'python3'), or "
            f"one of the project's own: {', '.join(f'{place}/NAME' for place in INSTALLED)}. A script of yours is run "
            "by its interpreter: ['python3', 'script.py'].",
            "agent",
        )
    if parts[-1] in _NEVER:
        raise Refused(f"{parts[-1]!r} is not allowed. {_NEVER[parts[-1]]}", "agent")
    found = folder / named
    if workspace not in found.parents or not found.is_file():
        raise Refused(f"There is no program {named!r} in the folder of the command.", "agent")
    return str(found)


def _not_allowed(named: str, rules: CommandRules) -> Refused:
    instead = _NEVER.get(named, "")
    allowed = ", ".join(sorted(rules.allowed, key=str.casefold))
    return Refused(f"{named[:100]!r} is not allowed. {instead + ' ' if instead else ''}Allowed: {allowed}.", "agent")
