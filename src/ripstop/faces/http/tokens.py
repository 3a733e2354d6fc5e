"""The token that every request carries, also on localhost: any page and any user of the machine reaches a port.

- It is in a private file in the user's state folder, one for each journal, made at the first start; or in the
  environment (`RIPSTOP_TOKEN`). A file beside the journal can have come with the folder, so none is looked for there.
- It is sent as `Authorization: Bearer TOKEN`, never in an address: those are logged, shown and kept.
- It is compared as a digest and in constant time, and appears in no message.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ripstop.kernel.errors import UsageError
from ripstop.security.files import OURS, PRIVATE_FILE, make_folder, make_private_folder, read_plain_file, state_folder

VARIABLE = "RIPSTOP_TOKEN"
FOLDER = "tokens"
MIN_TOKEN, MAX_TOKEN = 32, 500
"""Characters of a token."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_BEARER = re.compile(r"bearer +(\S+) *", re.IGNORECASE)
_OTHERS = 0o077


class FoundToken(NamedTuple):
    token: str
    where: str
    """The file or variable that has it, for people."""


class BearerToken:
    """The one token that is accepted."""

    def __init__(self, token: str) -> None:
        self._digest = _digest(token)

    def accepts(self, authorization: str) -> bool:
        """Whether the value of an `Authorization` header has the token."""
        found = _BEARER.fullmatch(authorization)
        return found is not None and hmac.compare_digest(_digest(found[1]), self._digest)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def token_file_of(journal: Path) -> Path:
    """Where the token for a journal is. Raises `UsageError` if the user has no home."""
    folder = state_folder()
    if folder is None:
        raise UsageError(f"The token is kept in your home, but HOME is not set. Set {VARIABLE}, or use --token-file.")
    where = str(journal.resolve())
    return folder / FOLDER / hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def find_token(path: Path, environment: Mapping[str, str]) -> FoundToken:
    """The token of the environment or, without one, of a file, which is made if it is missing. Raises `UsageError`."""
    if VARIABLE in environment:
        return FoundToken(_checked(environment[VARIABLE], f"the environment variable {VARIABLE}"), VARIABLE)
    try:
        _create(path)
        _check_private(path)
        text = read_plain_file(path, MAX_TOKEN + 1).decode("ascii")
    except UnicodeDecodeError as error:
        raise UsageError(f"The token in {path} is not ASCII. Remove the file; the next start makes another.") from error
    except OSError as error:
        raise UsageError(f"The token file {path} cannot be used: {error.strerror or error}.") from error
    return FoundToken(_checked(text.removesuffix("\n"), f"the file {path}"), str(path))


def _checked(token: str, where: str) -> str:
    if not MIN_TOKEN <= len(token) <= MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise UsageError(
            f"The token in {where} cannot be used: expected {MIN_TOKEN} to {MAX_TOKEN} of the characters "
            "A-Z a-z 0-9 . _ ~ + / - on one line. Make one:  openssl rand -hex 32"
        )
    return token


def _create(path: Path) -> None:
    """Make the file, complete or not at all, unless there is one."""
    if path.exists():
        return
    if path.parent.name == OURS:
        make_folder(path.parent)
    else:
        make_private_folder(path.parent)
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)
        except FileExistsError:
            return  # another process was first
    finally:
        os.unlink(new)


def _check_private(path: Path) -> None:
    found = os.stat(path)
    if found.st_uid != os.geteuid():
        raise UsageError(f"The token file {path} belongs to another user. Name another one with --token-file.")
    if stat.S_IMODE(found.st_mode) & _OTHERS:
        raise UsageError(
            f"The token file {path} can be read by other users, so it is no secret. Remove it; the next start makes "
            "another."
        )
