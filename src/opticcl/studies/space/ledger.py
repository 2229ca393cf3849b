"""The ledger of a study: what is known of every point, in one SQLite file that survives the end of any process.

A point is pending, done, refused with its reason, crashed (once, and is tried again) or set aside (it crashed twice). A
transaction holds some points, so a process that is killed loses only those that are then computed again; after a loss of power
the last transactions may be computed again too. One run at a time
holds the lock of the folder; the kernel releases it when the run ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from opticcl.errors import OutputError, StateFileError

__all__ = ["LEDGER", "Ledger", "State", "with_values"]

State = Literal["pending", "done", "refused", "crashed", "set aside"]

LEDGER, LOCK = "ledger.sqlite", "lock"

MOST_CRASHES = 2
"""After which a point is set aside [count]."""

_TABLES = """
CREATE TABLE IF NOT EXISTS study (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS points (
    key TEXT PRIMARY KEY, state TEXT NOT NULL DEFAULT 'pending', crashes INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '', result TEXT NOT NULL DEFAULT '{}', run INTEGER
) WITHOUT ROWID;
"""


class Ledger:
    """A ledger that this process may change; use it in a `with` block.

    Args:
        folder: that holds it; made if it does not exist.
        judged_by: what finished points depend on besides their keys.
    Raises: StateFileError: damaged, of another study, or another run works on it. OutputError: it cannot be written.
    """

    def __init__(self, folder: Path, judged_by: str) -> None:
        self.folder, self._path = folder, folder / LEDGER
        try:
            folder.mkdir(exist_ok=True)
            self._lock = open(folder / LOCK, "a+", encoding="ascii")  # noqa: SIM115 (kept until the end)
        except OSError as error:
            raise OutputError(f"cannot write {folder}: {error.strerror}") from None
        self._take_lock()
        try:
            with self._refusals():
                self._connection = sqlite3.connect(self._path, isolation_level=None)
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.executescript(_TABLES)
                self._check_study(judged_by)
                self._run = 1 + (self._connection.execute("SELECT max(run) FROM points").fetchone()[0] or 0)
            self._identity = _identity(self._path)
        except BaseException:
            self._lock.close()
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            holder = self._lock.read(20).strip()
            self._lock.close()
            raise StateFileError(
                f"{self._path}: another run works on this ledger (process {holder or 'unknown'}); wait for its end, "
                "or give another --folder"
            ) from None
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def _check_study(self, judged_by: str) -> None:
        known = self._connection.execute("SELECT value FROM study WHERE name = 'judged_by'").fetchone()
        if known is None:
            self._connection.execute("INSERT INTO study VALUES ('judged_by', ?)", (judged_by,))
        elif known[0] != judged_by:
            raise StateFileError(
                f"{self._path}: its points were computed with other measures, constraints or another version; give "
                "another --folder"
            )

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Errors of SQLite as ours."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OutputError(f"cannot write {self._path}: {error}; what was finished before is kept") from None
        except sqlite3.DatabaseError as error:
            raise StateFileError(f"{self._path}: is not a ledger of a study: {error}; give another --folder") from None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._lock.close()

    def add(self, keys: Iterable[str]) -> None:
        """Add points that it does not know yet, as pending."""
        with self._refusals(), self._transaction():
            self._connection.executemany("INSERT OR IGNORE INTO points (key) VALUES (?)", ((key,) for key in keys))

    def states(self) -> dict[str, State]:
        """State of every point by its key."""
        with self._refusals():
            return dict(self._connection.execute("SELECT key, state FROM points"))

    def results_before(self) -> dict[str, tuple[State, str, dict[str, Any]]]:
        """State, reason and values by key of every point but those that this run did or refused."""
        with self._refusals():
            rows = self._connection.execute(
                "SELECT key, state, reason, result FROM points WHERE run IS NOT ? OR state NOT IN ('done', 'refused')",
                (self._run,),
            ).fetchall()
        return with_values(rows)

    def outcomes(self) -> dict[str, tuple[State, str, bool]]:
        """State, reason, and whether the plan is wrong or not judged, of every point by its key."""
        verdict = json.dumps({"verdict": "right"})[
            1:-1
        ]  # inside a text of the values its quotes would have a backslash
        name = verdict.partition(":")[0]
        with self._refusals():
            rows = self._connection.execute(
                "SELECT key, state, reason, instr(result, ?) > 0 AND instr(result, ?) = 0 FROM points", (name, verdict)
            ).fetchall()
        return {key: (state, reason, bool(one)) for key, state, reason, one in rows}

    def record(self, finished: Mapping[str, tuple[str, str]]) -> None:
        """Record points that are done, or refused.

        Args: finished: reason, "" if it is done, and values as JSON, by key.
        Raises: OutputError: it cannot be written; the points stay pending. RuntimeError: one of them is finished already.
        """
        self._check_place()
        rows = [
            ("refused" if reason else "done", reason, values, self._run, key)
            for key, (reason, values) in finished.items()
        ]
        with self._refusals(), self._transaction():
            changed = self._connection.executemany(
                "UPDATE points SET state = ?, reason = ?, result = ?, run = ? "
                "WHERE key = ? AND state IN ('pending', 'crashed')",
                rows,
            ).rowcount
            if changed != len(rows):
                raise RuntimeError(f"{self._path}: {len(rows) - changed} points would be done twice")

    def crash(self, key: str, reason: str) -> bool:
        """Record that a process ended while it worked on a point.

        Args:
            key: of the point.
            reason: signal or exception.
        Returns: whether it is tried again; otherwise it is set aside.
        """
        self._check_place()
        with self._refusals(), self._transaction():
            self._connection.execute(
                "UPDATE points SET crashes = crashes + 1, reason = ?, run = ?, "
                "state = CASE WHEN crashes + 1 < ? THEN 'crashed' ELSE 'set aside' END WHERE key = ?",
                (reason, self._run, MOST_CRASHES, key),
            )
            (crashes,) = self._connection.execute("SELECT crashes FROM points WHERE key = ?", (key,)).fetchone()
        return bool(crashes < MOST_CRASHES)

    @property
    def table(self) -> str:
        """What identifies the table of results that was written last; "" if none was."""
        with self._refusals():
            row = self._connection.execute("SELECT value FROM study WHERE name = 'table'").fetchone()
        return str(row[0]) if row else ""

    @table.setter
    def table(self, value: str) -> None:
        with self._refusals(), self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO study VALUES ('table', ?)", (value,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # a full disk ends it
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _check_place(self) -> None:
        """Write the ledger again where it was removed while this process has it open.

        Raises: OutputError: it was removed.
        """
        if _identity(self._path) == self._identity:
            return
        try:
            self.folder.mkdir(exist_ok=True)
            with sqlite3.connect(self._path) as copy:
                self._connection.backup(copy)
            copy.close()
        except (OSError, sqlite3.Error) as error:
            raise OutputError(f"{self._path} was removed while the study ran, and cannot be written: {error}") from None
        raise OutputError(
            f"{self._path} was removed while the study ran; it is written again with all finished points: run the same "
            "command to go on"
        )


def with_values(rows: Iterable[tuple[str, State, str, str]]) -> dict[str, tuple[State, str, dict[str, Any]]]:
    """State, reason and values by key, from rows of these whose values are JSON."""
    rows = list(rows)
    decoded = json.loads(f"[{','.join(row[3] for row in rows)}]")  # at once: a tenth of the time
    return {key: (state, reason, values) for (key, state, reason, _), values in zip(rows, decoded, strict=True)}


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of a file; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
