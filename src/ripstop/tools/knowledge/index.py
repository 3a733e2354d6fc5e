"""The index of a knowledge folder: a cache in SQLite that can be deleted at any time and is made again.

- Two FTS5 tables: `words` has stemmed words and pairs of characters, `trigrams` finds parts of words and longer runs of
  characters. What both find is ranked by the sum of their bm25.
- Files are compared with it at every search, and those that changed are read again, in one transaction. A process that
  is killed leaves the index as it was.
- A lock file lets many search at once and one change the index. So a damaged one is removed while nobody has it open.
"""

import atexit
import hashlib
import os
import re
import shutil
import sqlite3
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct

from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import UsageError
from ripstop.security.files import PRIVATE_FILE, cache_folder, create_file, make_private_folder

from ..shared_folder import open_lock, try_lock
from .folder import MARKDOWN, FileList, KnowledgeFolder, Skipped, reason_of
from .passages import Passage, passages_of

# What is searched for: the words of a text, and of a question, in scripts with and without spaces between words.
#
# - Letters are compared without case, width and accents. English endings are left to SQLite's own stemmer.
# - Chinese, Japanese, Korean, Thai and the like are cut into pairs of neighbouring characters, so a word of two is
#   found inside a sentence. The last character of a run is kept on its own, so that one character can be found as the
#   beginning of a pair.
# - A question has words that say nothing about its subject. They are left out, unless it has no others.
# - Words are letters and digits only: nothing of a user's message can be part of a query's syntax.


MAX_QUESTION = 2_000
"""Characters: of a longer question its beginning and its end are searched for."""
MAX_WORDS = 100

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3031-\u3035\u3041-\u30ff\u3105-\u318e"
    "\u31a0-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

SHORTEST_PIECE = 3
"""Characters that the trigram index needs."""
PLURAL = 5
"""From this length on a final `s` is taken for an ending."""

_ENGLISH = """
a about after all also am an and any are as at be been before being but by can could d did do does doesn doing don down
for from get got had has have having he hello help her here hi him his how i if in into is isn it its just know let like
ll m may me might more my need no not now of on or our out please re s shall she should so some t tell than thank thanks
that the their them then there these they this those to too up us ve very want was we were what when where which while
who whom why will with would you your
"""
_CHINESE = """
什么 怎么 么样 怎样 如何 哪里 哪儿 哪个 哪些 多少 几个 为什 请问 你们 我们 他们 你好 您好 是否 是不 不是 可以 可不 能不
不能 有没 没有 有什 有哪 是什 是多 我想 想要 想问 问一 一下 一个 需要 知道 告诉 诉我 帮我 给我 这个 那个 这些 那些
么办 办呢 的吗 了吗 谢谢 麻烦 的是 的话 关于 或者 还是 以及 因为 所以 如果 但是
"""
_STOP_WORDS = frozenset((*_ENGLISH.split(), *_CHINESE.split()))


class Terms(Struct, frozen=True):
    """What a question asks for, as queries of FTS5."""

    words: str
    pieces: str
    """Parts of words, for the trigram index; can be empty."""


def words_of(text: str) -> str:
    """The words of a text as they are indexed, with spaces between them."""
    return " ".join(word for run in _runs(text) for word in _indexed(run))


def terms_of(question: str) -> Terms | None:
    """What to search for; `None` if a question has no letters and no digits."""
    if len(question) > MAX_QUESTION:
        question = f"{question[: MAX_QUESTION // 2]} {question[-MAX_QUESTION // 2 :]}"
    runs = list(dict.fromkeys(_runs(question)))
    wanted = list(dict.fromkeys(word for run in runs for word in _wanted(run)))
    subjects = [word for word in wanted if word not in _STOP_WORDS] or wanted
    if not subjects:
        return None
    # the trigram index has the texts as they are, with their accents
    accented = [run for run in _runs(question, accents=True) if run not in _STOP_WORDS]
    pieces = dict.fromkeys(piece for run in accented for piece in _pieces(run))
    return Terms(_any_of(subjects), _any_of(list(pieces)))


def _runs(text: str, accents: bool = False) -> Iterator[str]:
    """Words, and runs of characters without spaces between words, folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if not accents:
        folded = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    for match in _WORD.finditer(unicodedata.normalize("NFC", folded)):
        yield match[0]


def _indexed(run: str) -> Iterator[str]:
    if not _IS_UNSPACED.match(run):
        yield run
        return
    yield from _grams(run, 2)
    yield run[-1]


def _wanted(run: str) -> Iterator[str]:
    if len(run) == 1 or not _IS_UNSPACED.match(run):
        yield run
    else:
        yield from _grams(run, 2)


def _pieces(run: str) -> Iterator[str]:
    if _IS_UNSPACED.match(run):
        yield from _grams(run, SHORTEST_PIECE)
    elif len(run) > SHORTEST_PIECE:
        yield run[:-1] if len(run) >= PLURAL and run.endswith("s") else run


def _grams(run: str, length: int) -> Iterator[str]:
    return (run[at : at + length] for at in range(len(run) - length + 1))


def _any_of(words: list[str]) -> str:
    """A query for texts that have any of these. One character of an unspaced script is the beginning of a pair."""
    some = words[:MAX_WORDS]
    return " OR ".join(f'"{word}"*' if len(word) == 1 and _IS_UNSPACED.match(word) else f'"{word}"' for word in some)


VERSION = 1
"""Of the tables and of how texts are cut; an index of another version is made again."""
CANDIDATES = 200
"""Passages that each table can bring into the ranking."""
TITLE_WEIGHT = 3.0
PIECE_WEIGHT = 0.5
"""Of parts of words, next to whole words."""
LONGEST_WAIT, RETRY_INTERVAL = 60.0, 0.01
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
            with self._locked(shared=False):
                self._remove()
        try:
            return self._search(files, terms, most)
        except sqlite3.Error as error:
            raise TryAgain(f"The index {str(self._file)!r} cannot be used: {error}.") from error

    def _search(self, files: FileList, terms: Terms | None, most: int) -> SearchResult:
        with self._locked(shared=True):
            if self._file.exists():
                with closing(_connected(self._file)) as db:
                    if _version(db) == VERSION and _stamps(db) == files.stamps:
                        return _result(db, files, terms, most)
        with self._locked(shared=False):
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
    def _locked(self, shared: bool) -> Iterator[None]:
        path = self._file.with_suffix(".lock")
        try:
            descriptor = open_lock(path, PRIVATE_FILE)
        except OSError as error:
            raise TryAgain(f"The index {str(self._file)!r} cannot be locked: {error.strerror}.") from error
        try:
            end = time.monotonic() + LONGEST_WAIT
            while not try_lock(descriptor, shared):
                if time.monotonic() > end:
                    raise TryAgain(f"The index {str(self._file)!r} is in use by another process all the time.")
                time.sleep(RETRY_INTERVAL)
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


# Searching knowledge folders. Their indexes are in the user's cache folder, one for each folder.
#
# Without a cache folder that can be written to (no home, a read-only disk) an index lasts as long as the process.


MOST_PASSAGES = 50
INDEXES = "knowledge"


class KnowledgeBases:
    """All knowledge folders that a process searches."""

    def __init__(self, cache: Path | None = None) -> None:
        """`cache`: where the indexes are, if not in the user's own cache folder."""
        self._cache = cache
        self._temporary: Path | None = None
        self._choosing = threading.Lock()

    def search(self, folder: Path, question: str, most: int) -> SearchResult:
        """The passages of a folder that fit a question best, at most `MOST_PASSAGES`.

        Raises `Refused` if the folder cannot be read, and `TryAgain` if its index cannot be used now.
        """
        real = os.path.realpath(folder)
        name = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
        index = KnowledgeIndex(self._indexes() / f"{name}.db", KnowledgeFolder(Path(real)))
        return index.search(question, min(most, MOST_PASSAGES))

    def _indexes(self) -> Path:
        """The folder of the indexes."""
        with self._choosing:
            if self._temporary is None:
                kept = _kept_indexes(self._cache or cache_folder())
                if kept is not None:
                    return kept
                self._temporary = Path(tempfile.mkdtemp(prefix="ripstop-knowledge-"))
                atexit.register(shutil.rmtree, self._temporary, ignore_errors=True)
            return self._temporary


def _kept_indexes(cache: Path | None) -> Path | None:
    """A folder for indexes that last; `None` if there is none that can be written to."""
    if cache is None:
        return None
    indexes = cache / INDEXES
    try:
        make_private_folder(indexes)
    except OSError:  # a read-only disk, or a file in the way
        return None
    return indexes if os.access(indexes, os.W_OK | os.X_OK) else None


def search_knowledge(folder: Path, question: str, most: int) -> SearchResult:
    """What a style would get for a question, for people who look. Raises `UsageError` if the folder cannot be read."""
    try:
        return KnowledgeBases().search(folder, question, most)
    except Refused as refusal:
        raise UsageError(str(refusal)) from refusal
