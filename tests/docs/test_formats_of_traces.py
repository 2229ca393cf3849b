"""docs/traces.md: every reader of traces, with what it reads, what is assumed and what cannot be known."""

from tests.docs.pages import ROOT

from opticcl.traces import TRACES
from opticcl.traces.foreign import ForeignReader


def test_every_reader_of_traces_has_a_row():
    """And no other; every cell says something."""
    page = (ROOT / "docs/traces.md").read_text()
    table = page.partition("\n## The formats\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")
    ]
    readers = [name for name in TRACES.names() if not isinstance(TRACES.get(name).reader, ForeignReader)]
    assert sorted(first.strip("`") for first, *_ in rows) == sorted(readers)
    assert all(len(row) == 4 and all(row) for row in rows)
