"""Custom collectives: from a file to a verified schedule, and refused files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.synthesis.everything import fewest_rounds

import opticcl
from opticcl.collective import custom_collective
from opticcl.errors import ParameterError
from opticcl.execute import execute
from opticcl.synthesis import read_collective, synthesize
from opticcl.verify import verify

WEIGHTS = """
name = "Expert weights"
ranks = 6
[[chunks]]
before = [0, 4]
after = "all"
count = 2
[[chunks]]
before = [5]
after = [1, 2]
"""


def written(folder, text, name="mine.toml"):
    """A file with that text."""
    path = folder / name
    path.write_text(text)
    return path


def test_copies_of_which_two_hold_the_same(tmp_path):
    """A rank may receive from any holder; the integers arrive, and nothing else."""
    own = read_collective(written(tmp_path, WEIGHTS))
    assert (own.name, own.num_ranks, own.num_chunks, own.reduces) == ("expert weights", 6, 3, False)
    found = synthesize("lightpath:shape=2x3,lasers=2", own)
    assert found.optimal
    message = np.array([7, 8, 9])
    results = execute(found.circuits.schedule, [message if rank in (0, 4, 5) else None for rank in range(6)])
    assert [list(r) for r in results] == [[7, 8, 0], [7, 8, 9], [7, 8, 9], [7, 8, 0], [7, 8, 0], [7, 8, 0]]


def test_sums_of_some_for_others(tmp_path):
    """Ranks 0 to 2 add up one chunk for rank 5, and another for ranks 3 and 0."""
    text = json.dumps(
        {
            "name": "two sums",
            "ranks": 6,
            "reduces": True,
            "chunks": [{"before": [0, 1, 2], "after": [5]}, {"before": [1, 2], "after": [3, 0]}],
        }
    )
    own = read_collective(written(tmp_path, text, "mine.json"))
    found = synthesize("lightpath:shape=2x3,lasers=1,waveguides=1", own, time_limit=20)
    assert verify(found.circuits).ok
    results = execute(found.circuits.schedule, [np.array([10**r, 2 * 10**r]) for r in range(6)])
    assert results[5][0] == 111
    assert results[3][1] == results[0][1] == 220


def test_its_plan_file_is_verified_again(tmp_path):
    """Saved and loaded, the tables are kept; a changed table is detected."""
    found = synthesize("lightpath:shape=2x3", read_collective(written(tmp_path, WEIGHTS)))
    path = tmp_path / "plan.json"
    opticcl.Plan(found.circuits, 3000).save(path)
    again = opticcl.load(path).schedule.collective
    ranks, chunks = np.arange(6)[:, None], np.arange(3)[None, :]
    assert again.after(ranks, chunks).sum() == 6 + 6 + 2
    whole = json.loads(path.read_text())
    whole["header"]["collective"]["after"] = "eJxjYAAAAAIAAQ=="
    path.write_text(json.dumps(whole))
    with pytest.raises(opticcl.errors.PlanFileError, match="header"):
        opticcl.load(path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("before = [0, 4]", "before = []", r"chunks\[0\]: before=\[\]: no rank holds"),
        ("after = [1, 2]", "after = []", r"chunks\[1\]: after=\[\]: no rank needs"),
        ("after = [1, 2]", "after = [1, 6]", r"chunks\[1\]: after: rank 6 is not 0 to 5"),
        ("before = [0, 4]", "before = [-1]", "rank -1 is not"),
        ("before = [0, 4]", "before = [4, 4]", "rank 4 is listed twice"),
        ("before = [0, 4]", "before = [0.5]", r"chunks\[0\].before"),
        ('after = "all"', 'after = "most"', r"chunks\[0\].after"),
        ("count = 2", "count = 0", "count=0"),
        ("count = 2", "count = 1000000", "count=1000000"),
        ("count = 2", "weight = 2", "unknown field `weight`"),
        ("ranks = 6", "ranks = 0", "ranks=0"),
        ("ranks = 6", "", "missing required field `ranks`"),
        ('"Expert weights"', '"all_gather"', "registered collective"),
        ('"Expert weights"', '""', "name=''"),
        ("ranks = 6", "ranks = = 6", "line 3"),
    ],
)
def test_what_is_refused(tmp_path, old, new, words):
    """One line that names the file, the field and the rule."""
    assert old in WEIGHTS
    path = written(tmp_path, WEIGHTS.replace(old, new, 1))
    with pytest.raises(ParameterError, match=words) as refused:
        read_collective(path)
    assert "\n" not in str(refused.value)


def test_files_that_are_none(tmp_path):
    """No file, another suffix, no text, no chunks, and ranks that the job does not have."""
    for path in (tmp_path / "none.toml", written(tmp_path, "x", "mine.txt"), written(tmp_path, "[]", "list.json")):
        with pytest.raises(ParameterError, match=path.name):
            read_collective(path)
    (tmp_path / "raw.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match=r"raw\.toml"):
        read_collective(tmp_path / "raw.toml")
    with pytest.raises(ParameterError, match="the list is empty"):
        read_collective(written(tmp_path, 'name = "a"\nranks = 2\nchunks = []'))
    with pytest.raises(ParameterError, match="6 ranks and the job has 4 nodes"):
        synthesize("lightpath:shape=2x2", read_collective(written(tmp_path, WEIGHTS)))


@st.composite
def questions(draw):
    """Any holders and receivers on a tiny grid: (shape, lasers, waveguides), (before, after), adds."""
    rows, columns = draw(st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 2)]))
    adds = draw(st.booleans())
    flags = st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns).filter(any)
    pieces = draw(st.integers(1, 1 if adds and rows == 2 else 2))
    table = np.array([[draw(flags), draw(flags)] for _ in range(pieces)])
    return ((rows, columns), draw(st.integers(1, 2)), draw(st.integers(1, 2))), (table[:, 0], table[:, 1]), adds


@given(questions())
@examples(8)
def test_the_optimum_is_what_trying_everything_finds(question):
    """Constructed schedules are not below the optimum, the search reaches it, verified and proven."""
    (shape, lasers, waveguides), tables, adds = question
    own = custom_collective("mine", *tables, adds)
    where = f"lightpath:shape={shape[0]}x{shape[1]},lasers={lasers},waveguides={waveguides}"
    constructed, found = (synthesize(where, own, method=m, time_limit=30) for m in ("constructed", "auto"))
    assert verify(constructed.circuits).ok
    assert verify(found.circuits).ok
    assert found.optimal
    assert constructed.lower_bound <= found.lower_bound == found.num_steps
    fewest, exact = fewest_rounds(shape, lasers, waveguides, *tables, adds, most=found.num_steps)
    assert fewest == found.num_steps or (not exact and fewest < found.num_steps)
