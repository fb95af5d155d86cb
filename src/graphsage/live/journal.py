"""The journal: every accepted change, durable before it is acknowledged. SQLite in WAL mode, one connection.

Each row's check covers its content and the check of the row before, which detects altered, lost and swapped rows. A
crash may only truncate the WAL; SQLite ignores the incomplete end on opening.
"""

import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

import apsw

from graphsage.errors import ChangesGoneError, LostChangesError, OutputError, StoreError, setting
from graphsage.live.change import Change
from graphsage.live.mark import NAME as MARK
from graphsage.live.mark import Mark, read_mark
from graphsage.regular_files import open_regular, read_regular

NEEDED_SQLITE = (3, 51, 3)  # earlier versions can corrupt a WAL that is reset during a read
_APPLICATION = 0x47534A31
JOURNAL = "journal.sqlite"
START = b"\0" * 16  # the check before the first row
_ROWS = "SELECT sequence, body, floats, checked FROM journal WHERE sequence > ?"


class Journal:
    """Sequence numbers grow by one per change. `base` and `check` are of the last change in the generation on disk.
    Each appended change is noted in `mark`."""

    def __init__(self, path: Path, base: int, check: bytes, name: Path | None = None) -> None:
        """Messages call it `name`. LostChangesError if it cannot be read to its end."""
        version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        if version < NEEDED_SQLITE:
            raise StoreError(
                f"the journal needs SQLite {'.'.join(map(str, NEEDED_SQLITE))} or later; got "
                f"{apsw.sqlite_lib_version()}; upgrade apsw"
            )
        self._path, self._guard = name or path, threading.Lock()
        self._base = base, check
        self.mark: Mark | None = None
        self.sequence, self.check = base, check
        self._connection = apsw.Connection(str(path))
        try:
            self._keep_wal(True)  # a journal that is refused must stay as it was found
            self._prepare()
            for row in self._rows(base):
                self.sequence, self.check = self._chain(self.sequence, self.check, [row])
            self._keep_wal(False)
        except (apsw.Error, StoreError) as error:
            self._connection.close()
            reason = f"{self._path} cannot be read ({error})" if isinstance(error, apsw.Error) else str(error)
            raise lost(reason, self.sequence) from error

    def _keep_wal(self, keep: bool) -> None:
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(keep))

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        application = run("PRAGMA application_id").get
        tables = run("SELECT count(*) FROM sqlite_schema").get
        if tables and application != _APPLICATION:
            raise StoreError(f"{self._path} is not a journal of a live graph")
        if not tables:
            with self._connection:
                run(f"PRAGMA application_id = {_APPLICATION}")
                run(
                    "CREATE TABLE journal (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, "
                    "floats BLOB NOT NULL, checked BLOB NOT NULL) STRICT"
                )

    def _chain(self, last: int, seen: bytes, rows: Iterable[tuple[int, bytes, bytes, bytes]]) -> tuple[int, bytes]:
        """Verify rows that follow change `last` with the check `seen`; return number and check of the last row."""
        for sequence, body, floats, checked in rows:
            last += 1
            whole = all(isinstance(part, bytes) for part in (body, floats, checked))  # a flipped bit may change a type
            seen = _checked(seen, last, body, floats) if whole else b""
            if sequence != last or seen != checked:
                raise StoreError(f"{self._path} is damaged at change {last}: it was altered after it was written")
        return last, seen

    def _rows(self, after: int) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        yield from self._connection.execute(f"{_ROWS} ORDER BY sequence", (after,))

    def append(self, changes: Sequence[Change]) -> tuple[int, bytes]:
        """Make `changes` durable in one transaction; return sequence number and check of the last one."""
        sequence, check, rows = self.sequence, self.check, []
        for change in changes:
            body, floats = change.encode()
            sequence += 1
            check = _checked(check, sequence, body, floats)
            rows.append((sequence, body, floats, check))
        try:
            with self._guard, self._connection:
                self._connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?)", rows)
        except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
            raise OutputError(f"cannot write {self._path}: {error}; the change was not made") from error
        except apsw.Error as error:
            raise self._damaged(error) from error
        self.sequence, self.check = sequence, check
        if self.mark is not None:
            self.mark.write(sequence, check)
        return sequence, check

    def since(self, sequence: int) -> list[tuple[int, Change, bytes]]:
        """The changes after `sequence`, with their numbers and checks."""
        try:
            with self._guard:
                rows = list(self._rows(sequence))
        except apsw.Error as error:
            raise self._damaged(error) from error
        return [(number, Change.decode(body, floats), check) for number, body, floats, check in rows]

    def page(self, after: int, limit: int, size: int) -> list[tuple[int, Change]]:
        """At most `limit` changes after number `after`, verified against the check of that one. The page ends early
        after `size` bytes."""
        rows: list[tuple[int, bytes, bytes, bytes]] = []
        last = self.sequence  # a change that is journaled from now on may be missing from `rows`
        try:
            with self._guard:
                anchor = self._connection.execute("SELECT checked FROM journal WHERE sequence = ?", (after,)).get
                if anchor is None:
                    anchor = {0: START, self._base[0]: self._base[1]}.get(after)
                for row in self._rows(after):
                    rows.append(row)
                    size -= len(row[1]) + len(row[2])
                    if len(rows) == limit or size <= 0:
                        break
        except apsw.Error as error:
            raise self._damaged(error) from error
        if anchor is None or (not rows and after < last) or (rows and rows[0][0] != after + 1):
            raise ChangesGoneError(f"the journal no longer has the changes after number {after}")
        self._chain(after, anchor, rows)
        return [(number, Change.decode(body, floats)) for number, body, floats, _ in rows]

    def verify_page(self, after: int, check: bytes, limit: int = 1000) -> tuple[int, bytes]:
        """Read and verify at most `limit` changes after number `after`, which has that check; return number and check
        of the last. StoreError if one is altered or missing."""
        rows, last = [], self.sequence
        try:
            with self._guard:
                for row in self._rows(after):
                    rows.append(row)
                    if len(rows) == limit:
                        break
        except apsw.Error as error:
            raise self._damaged(error) from error
        reached, check = self._chain(after, check, rows)
        if len(rows) < limit and reached < last:
            raise StoreError(f"{self._path} lacks change {reached + 1} of {last}; restore a backup")
        return reached, check

    def check_of(self, sequence: int) -> bytes:
        """The check of a change that the journal still has."""
        with self._guard:
            found = self._connection.execute("SELECT checked FROM journal WHERE sequence = ?", (sequence,)).get
        if found is None:
            raise StoreError(f"{self._path} lacks change {sequence}; restore a backup")
        return bytes(found)

    def trim(self, sequence: int, keep: int = 0, size: int = 1 << 26) -> None:
        """Delete the changes up to `sequence`, which a generation on disk now holds, but the last `keep` of them as
        far as they fit in `size` bytes: readers of the feed may still need them."""
        with self._guard:
            for number, stored in self._connection.execute(
                "SELECT sequence, length(body) + length(floats) FROM journal "
                "WHERE sequence <= ? ORDER BY sequence DESC LIMIT ?",
                (sequence, keep),
            ):
                size -= stored
                if size < 0:
                    break
                sequence = number - 1
            with self._connection:
                self._connection.execute("DELETE FROM journal WHERE sequence <= ?", (sequence,))
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def copy_to(self, path: Path) -> None:
        """Copy the journal into another file without stopping changes."""
        other = apsw.Connection(str(path))
        try:
            with self._guard, other.backup("main", self._connection, "main") as backup:
                backup.step(-1)
        finally:
            other.close()

    def copy_rows(self, path: Path, last: int) -> None:
        """Append the good changes of another journal, up to number `last` or the first damaged one."""
        if not path.is_file() or not path.stat().st_size:
            return
        other, rows = apsw.Connection(str(path)), []
        try:
            other.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            found = other.execute(f"{_ROWS} AND sequence <= ? ORDER BY sequence", (self.sequence, last))
            for row in found:
                self.sequence, self.check = self._chain(self.sequence, self.check, [row])
                rows.append(row)
        except (apsw.Error, StoreError):
            pass  # the rest is lost
        finally:
            other.close()
        with self._guard, self._connection:
            self._connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        with self._guard:
            self._connection.close()
        if self.mark is not None:
            self.mark.close()
            self.mark = None

    def give_up(self) -> None:
        """Close, and leave the files as they were found."""
        self._keep_wal(True)
        self.close()

    def _damaged(self, error: apsw.Error) -> StoreError:
        return StoreError(f"{self._path} cannot be read ({error}); restore a backup")


def lost(reason: str, last: int) -> LostChangesError:
    """Changes after number `last` are damaged or missing."""
    way = f"graphsage live recover and {setting('last_good', last)}"
    return LostChangesError(
        f"{reason}; the last good change is {last}: restore a backup, or accept the loss of later ones with {way}", last
    )


def open_journal(store: Path, base: int, check: bytes) -> Journal:
    """Open the journal of a store. Every store is created with one, so a missing journal means lost changes, and so
    does one that ends before the mark."""
    journal = _open(store, base, check)
    journal.mark = Mark(store, journal.sequence, journal.check)
    return journal


@contextmanager
def reading_journal(store: Path, base: int, check: bytes) -> Iterator[Journal]:
    """The journal of a store that is not written to: a copy is opened."""
    with tempfile.TemporaryDirectory(prefix="graphsage-journal-") as folder:
        for name in (JOURNAL, f"{JOURNAL}-wal", MARK):
            with suppress(FileNotFoundError):
                (Path(folder) / name).write_bytes(read_regular(store / name, StoreError))
        journal = _open(store, base, check, Path(folder))
        try:
            yield journal
        finally:
            journal.close()


def _open(store: Path, base: int, check: bytes, copy: Path | None = None) -> Journal:
    path, folder = store / JOURNAL, copy or store
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(FileNotFoundError):
            open_regular(each, StoreError).close()
    if not path.is_file() or not path.stat().st_size:
        raise lost(f"{path} is missing or empty", base)
    try:
        sequence, marked = read_mark(folder)
    except StoreError as error:
        sequence, marked, unmarked = base, check, str(error)
    else:
        unmarked = ""
    journal = Journal(folder / JOURNAL, base, check, path)
    last, reason = journal.sequence, unmarked
    if sequence > last:
        reason = f"{path} ends at change {last}, and changes up to {sequence} were acknowledged"
    elif sequence >= base and marked != (check if sequence == base else journal.check_of(sequence)):
        last, reason = base, f"{path}: change {sequence} is not the one that was acknowledged"
    if reason:
        journal.give_up()
        raise lost(reason, last)
    return journal


def cut_journal(store: Path, base: int, check: bytes, last: int) -> Path:
    """Begin a new journal with the changes up to number `last`; return the folder with the files of the old one."""
    path, made, kept = store / JOURNAL, store / ".journal.part", store / f"damaged-journal-{last}"
    made.unlink(missing_ok=True)
    fresh = Journal(made, base, check)
    fresh.copy_rows(path, last)
    if fresh.sequence != last:
        raise StoreError(f"{path} has no good change {last}; restore a backup")
    kept.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copy2(path, kept / JOURNAL)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).rename(kept / f"{JOURNAL}{end}")
    fresh.close()
    made.replace(path)
    Mark(store, last, fresh.check).close()
    return kept


def _checked(before: bytes, sequence: int, body: bytes, floats: bytes) -> bytes:
    head = before + sequence.to_bytes(8, "little") + len(body).to_bytes(8, "little")
    return blake2b(head + body + floats, digest_size=16).digest()
