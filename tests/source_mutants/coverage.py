"""Which test runs which lines of the source, kept in a file from run to run.

A line is counted from the first of its function, so that a change elsewhere in the file does not matter. A test is run again
when its file changes, or a source file is added. Where a function has changed, the tests that called it count for all of its
lines.
"""

import ast
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

import pytest

from tests.source_mutants.operators import Mutant, functions_of


@dataclass
class Record:
    """What one test runs.

    Args:
        digest: of the file of the test and the names of source files.
        seconds: of the processor that it takes, traced [s].
        ok: whether it passes.
        lines: by "path:function", counted from the first line of the function.
        functions: digest of each of those functions.
    """

    digest: str
    seconds: float = 0.0
    ok: bool = True
    lines: dict[str, list[int]] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)


class Coverage:
    """Records of tests.

    Args:
        path: of the file they are kept in.
        root: folder of the package.
        files: of the package whose functions count: all that are beside these.
    """

    def __init__(self, path: Path, root: Path, files: list[Path]) -> None:
        self.path = path
        self.names = {
            str(file): file.relative_to(root).as_posix()
            for folder in {file.parent for file in files}
            for file in folder.glob("*.py")
        }
        self.now = {
            f"{name}:{function}": (
                _digest(ast.unparse(node)),
                min(node.lineno, *(d.lineno for d in node.decorator_list)),
            )
            if node.decorator_list
            else (_digest(ast.unparse(node)), node.lineno)
            for file, name in self.names.items()
            for function, node in functions_of(ast.parse(Path(file).read_text("utf-8")))
        }
        self.records = self._load()

    def _load(self) -> dict[str, Record]:
        if not self.path.exists():
            return {}
        return {name: Record(**one) for name, one in json.loads(self.path.read_text("utf-8")).items()}

    def knows(self, item: pytest.Item) -> bool:
        """Whether a test has been run since its file was changed."""
        return item.nodeid in self.records and self.records[item.nodeid].digest == self._digest_of(item)

    def _digest_of(self, item: pytest.Item) -> str:
        """Of the file of a test and the names of the source files: where one is added, lines are recorded again."""
        return _digest("\n".join([item.path.read_text("utf-8"), *sorted(self.names.values())]))

    @contextmanager
    def of(self, item: pytest.Item) -> Iterator[Record]:
        """Within this a test runs, and its record is made."""
        found = self.records[item.nodeid] = Record(self._digest_of(item))
        hits: set[tuple[CodeType, int]] = set()
        names = self.names

        def line(frame, event, argument):
            hits.add((frame.f_code, frame.f_lineno))
            return line

        def call(frame, event, argument):
            if frame.f_code.co_filename in names:
                hits.add((frame.f_code, frame.f_lineno))
                return line
            return None

        begun = time.process_time()
        sys.settrace(call)
        try:
            yield found
        finally:
            sys.settrace(None)
            found.seconds = round(time.process_time() - begun, 3)
        lines: dict[str, set[int]] = {}
        for code, number in hits:
            key = f"{names[code.co_filename]}:{code.co_qualname.split('.<locals>')[0]}"
            if key in self.now:
                lines.setdefault(key, set()).add(number - self.now[key][1])
        found.lines = {key: sorted(numbers) for key, numbers in lines.items()}
        found.functions = {key: self.now[key][0] for key in lines}

    def write(self) -> None:
        """Keep the records."""
        self.path.write_text(json.dumps({name: vars(one) for name, one in self.records.items()}), "utf-8")

    def read(self, items: list[pytest.Item]) -> "Covered":
        """Records of the tests that were collected, read anew."""
        records = self._load()
        known = [(number, records[item.nodeid]) for number, item in enumerate(items) if item.nodeid in records]
        return Covered([(number, record) for number, record in known if record.ok], self.now)


@dataclass(frozen=True)
class Covered:
    """Which tests may kill a mutant.

    Args:
        records: number and record of each test that passes.
        now: digest and first line of each function.
    """

    records: list[tuple[int, Record]]
    now: dict[str, tuple[str, int]]

    def tests(self, mutant: Mutant) -> list[tuple[float, int]]:
        """Seconds and number of each test that runs a line of the statement that is changed."""
        key = f"{mutant.path}:{mutant.function}"
        digest, first = self.now[key]
        wanted = {line - first for line in mutant.lines}
        return [
            (record.seconds, number)
            for number, record in self.records
            if key in record.lines and (record.functions[key] != digest or not wanted.isdisjoint(record.lines[key]))
        ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
