"""The index of a knowledge folder: a cache in SQLite that can be deleted at any time and is made again.

- Two FTS5 tables: `words` has stemmed words and pairs of characters, `trigrams` finds parts of words and longer runs of
  characters. What both find is ranked by the sum of their bm25.
- Files are compared with it at every search, and those that changed are read again, in one transaction. A process that
  is killed leaves the index as it was.
- A lock file lets many search at once and one change the index. So a damaged one is removed while nobody has it open.
"""

import fcntl
import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from ripstop.files.private_files import PRIVATE_FILE, create_file
from ripstop.runtime.performers import Refused, TryAgain

from .folder import MARKDOWN, FileList, KnowledgeFolder, Skipped, reason_of
from .passages import Passage, passages_of
from .words import Terms, terms_of, words_of

VERSION = 1
"""Of the tables and of how texts are cut; an index of another version is made again."""
CANDIDATES = 200
"""Passages that each table can bring into the ranking."""
TITLE_WEIGHT = 3.0
PIECE_WEIGHT = 0.5
"""Of parts of words, next to whole words."""
LONGEST_WAIT, PAUSE = 60.0, 0.01
"""Seconds until a search gives up waiting for another process, and between two looks."""

_TABLES = """
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, digest TEXT NOT NULL,
    problem TEXT NOT NULL);
CREATE TABLE passages (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    heading TEXT NOT NULL);
CREATE INDEX passages_of_file ON passages (file);
CREATE VIRTUAL TABLE words USING fts5 (title, text, tokenize = 'porter ascii');
CREATE VIRTUAL TABLE trigrams USING fts5 (title, text, content = 'passages', content_rowid = 'id',
    tokenize = 'trigram');
"""
_FIND_WORDS = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
_FIND_PIECES = "SELECT rowid, rank FROM trigrams WHERE trigrams MATCH ? ORDER BY rank LIMIT ?"


class FoundPassage(Struct, frozen=True):
    source: str
    """`file.md#Heading`, or the file alone."""
    text: str


class SearchResult(Struct, frozen=True):
    passages: tuple[FoundPassage, ...]
    skipped: tuple[Skipped, ...]
    """Files that were not searched."""
    files: int


class KnowledgeIndex:
    def __init__(self, file: Path, folder: KnowledgeFolder) -> None:
        """`file`: where the index is. Its folder must exist."""
        self._file = file
        self._folder = folder

    def search(self, question: str, most: int) -> SearchResult:
        """The passages that fit a question best. Raises `Refused` if the folder cannot be read, and `TryAgain`."""
        files = self._folder.files()
        terms = terms_of(question)
        try:
            return self._search(files, terms, most)
        except sqlite3.Error:
            with self._locked(fcntl.LOCK_EX):
                self._remove()
        try:
            return self._search(files, terms, most)
        except sqlite3.Error as error:
            raise TryAgain(f"The index {str(self._file)!r} cannot be used: {error}.") from error

    def _search(self, files: FileList, terms: Terms | None, most: int) -> SearchResult:
        with self._locked(fcntl.LOCK_SH):
            if self._file.exists():
                with closing(_connected(self._file)) as db:
                    if _version(db) == VERSION and _stamps(db) == files.stamps:
                        return _result(db, files, terms, most)
        with self._locked(fcntl.LOCK_EX):
            create_file(self._file)
            with closing(_connected(self._file)) as db:
                if _version(db) not in (0, VERSION):
                    raise sqlite3.DatabaseError("it is of another version of ripstop")
                with _transaction(db):
                    if not _version(db):
                        _create(db)
                    _update(db, self._folder, files)
                return _result(db, files, terms, most)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        path = self._file.with_suffix(".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
        except OSError as error:
            raise TryAgain(f"The index {str(self._file)!r} cannot be locked: {error.strerror}.") from error
        try:
            end = time.monotonic() + LONGEST_WAIT
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, how | fcntl.LOCK_NB)
                    break
                if time.monotonic() > end:
                    raise TryAgain(f"The index {str(self._file)!r} is in use by another process all the time.")
                time.sleep(PAUSE)
            yield
        finally:
            os.close(descriptor)

    def _remove(self) -> None:
        for name in (self._file.name, f"{self._file.name}-journal"):
            self._file.with_name(name).unlink(missing_ok=True)


# The file


def _connected(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=LONGEST_WAIT, isolation_level=None)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version


def _create(db: sqlite3.Connection) -> None:
    for statement in _TABLES.strip().split(";\n"):
        db.execute(statement)
    ranking = f"bm25({TITLE_WEIGHT}, 1.0)"
    db.execute("INSERT INTO words (words, rank) VALUES ('rank', ?)", [ranking])
    db.execute("INSERT INTO trigrams (trigrams, rank) VALUES ('rank', ?)", [ranking])
    db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


# Keeping it up to date


def _stamps(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT path, stamp FROM files"))


def _update(db: sqlite3.Connection, folder: KnowledgeFolder, files: FileList) -> None:
    known = _stamps(db)
    for path in known.keys() - files.stamps.keys():
        _forget(db, path)
    for path, stamp in files.stamps.items():
        if known.get(path) != stamp:
            _read_again(db, folder, path, stamp)


def _forget(db: sqlite3.Connection, path: str) -> None:
    for (number,) in db.execute("SELECT id FROM files WHERE path = ?", [path]).fetchall():
        # the trigrams read the passages, to know what to delete
        db.execute("DELETE FROM trigrams WHERE rowid IN (SELECT id FROM passages WHERE file = ?)", [number])
        db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE file = ?)", [number])
        db.execute("DELETE FROM passages WHERE file = ?", [number])
        db.execute("DELETE FROM files WHERE id = ?", [number])


def _read_again(db: sqlite3.Connection, folder: KnowledgeFolder, path: str, stamp: str) -> None:
    problem, digest, text = "", "", ""
    try:
        file = folder.read(path)
        stamp, digest = file.stamp, hashlib.sha256(file.data).hexdigest()
        text = file.data.decode("utf-8-sig")
    except FileNotFoundError:
        _forget(db, path)
        return
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 text: byte {error.start} is wrong"
    except (OSError, Refused) as error:
        problem = reason_of(error)
    same = "UPDATE files SET stamp = ? WHERE path = ? AND digest = ? AND problem = ?"
    if db.execute(same, [stamp, path, digest, problem]).rowcount:
        return
    _forget(db, path)
    values = [path, stamp, digest, problem]
    added = db.execute("INSERT INTO files (path, stamp, digest, problem) VALUES (?, ?, ?, ?)", values)
    for passage in passages_of(text, path.lower().endswith(MARKDOWN)):
        _add(db, added.lastrowid or 0, _with_path(path, passage))


def _with_path(path: str, passage: Passage) -> Passage:
    """The name of a file says what its passages are about, as a heading does."""
    return Passage(passage.text, passage.heading, f"{path.rpartition('.')[0]} / {passage.title}")


def _add(db: sqlite3.Connection, file: int, passage: Passage) -> None:
    values = [file, passage.title, passage.text, passage.heading]
    number = db.execute("INSERT INTO passages (file, title, text, heading) VALUES (?, ?, ?, ?)", values).lastrowid
    db.execute("INSERT INTO trigrams (rowid, title, text) VALUES (?, ?, ?)", [number, passage.title, passage.text])
    words = [number, words_of(passage.title), words_of(passage.text)]
    db.execute("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", words)


# Searching


def _result(db: sqlite3.Connection, files: FileList, terms: Terms | None, most: int) -> SearchResult:
    problems = db.execute("SELECT path, problem FROM files WHERE problem <> ''").fetchall()
    skipped = (*files.skipped, *(Skipped(path, problem) for path, problem in problems))
    best = _ranked(db, terms)[:most] if terms else []
    passages = tuple(_passage(db, number) for number in best)
    return SearchResult(passages, skipped, len(files.stamps) - len(problems))


def _ranked(db: sqlite3.Connection, terms: Terms) -> list[int]:
    """The passages that have any of the terms, the best first; of equals the one that comes first."""
    scores: dict[int, float] = {}
    for statement, query, weight in ((_FIND_WORDS, terms.words, 1.0), (_FIND_PIECES, terms.pieces, PIECE_WEIGHT)):
        for number, rank in db.execute(statement, [query, CANDIDATES]) if query else ():
            scores[number] = scores.get(number, 0.0) + weight * rank
    return sorted(scores, key=lambda number: (scores[number], number))


def _passage(db: sqlite3.Connection, number: int) -> FoundPassage:
    query = "SELECT path, heading, text FROM passages JOIN files ON files.id = file WHERE passages.id = ?"
    row = db.execute(query, [number]).fetchone()
    if row is None or not all(isinstance(value, str) for value in row):
        raise sqlite3.DatabaseError("a passage is missing")
    path, heading, text = row
    return FoundPassage(f"{path}#{heading}" if heading else path, text)
