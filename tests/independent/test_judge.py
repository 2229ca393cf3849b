"""The independent judge by itself: what it imports, and plans by hand whose verdict is known."""

import ast
import base64
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.independent.drawn import Drawn, packed, row_of
from tests.independent.judge import judge, main
from tests.independent.plan_rows import MalformedError, permutation, read_plan

import opticcl

HERE = Path(__file__).parent
JUDGE = {path.stem for path in HERE.glob("*.py")} - {"drawn"} - {path.stem for path in HERE.glob("test_*.py")}
"""Modules that judge; the others draw plans, or compare."""


def test_the_judge_imports_nothing_of_the_library():
    """Its modules import Python's own, NumPy and each other, and no text for Python to execute."""
    assert {"judge", "plan_rows", "phases", "data", "light", "machines"} == JUDGE
    for name in JUDGE:
        tree = ast.parse((HERE / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                mine = module.rpartition(".")
                known = mine[0] == "tests.independent" and mine[2] in JUDGE
                assert known or module.partition(".")[0] in {"numpy", *sys.stdlib_module_names} - {"importlib"}, module
            assert not isinstance(node, ast.Name) or node.id not in ("eval", "exec", "__import__"), name


# --- plans by hand ------------------------------------------------------------------------------------------------------


def by_hand(fabric, ranks, chunks, after, rows, **header):
    """A plan that begins with all chunks at rank 0, of one step for each that a row names.

    Args:
        fabric: of the header.
        ranks, chunks: of the collective [count].
        after: (chunk, rank) pairs to be held at the end.
        rows: of the file.
        header: further fields.
    """
    begin, end = np.zeros((2, chunks, ranks), bool)
    begin[:, 0] = True
    for chunk, rank in after:
        end[chunk, rank] = True
    tables = {"before": packed(begin), "after": packed(end), "reduces": False}
    collective = {"name": "by_hand", "num_ranks": ranks, "num_chunks": chunks, **tables}
    steps = 1 + max(row["step"] for row in rows)
    whole = {"fabric": fabric, "collective": collective, "num_steps": steps, "nodes": None, **header}
    return Drawn("by hand", whole, rows)


def sent(number, *, step=0, round=0, chunk=0, many=1, src=0, dst, port=0, lines=(0, 1, 1), path):
    """A row that copies chunks.

    Args:
        number: of its transfer.
        step, round: that it belongs to.
        chunk, many: first chunk and their number.
        src, dst: nodes.
        port: of both.
        lines: first wavelength, number and distance.
        path: elements that the light passes.
    """
    carried = {"transfer": number, "chunk_lo": chunk, "chunk_n": many, "parts": 1, "op": 0}
    return row_of(step, round, src, dst, port, lines, path, None, carried)


def verdict(plan, folder):
    """Of a plan that is written as a file."""
    return judge(plan.write(folder, ".json")).verdict


RAMP = "ramp:groups=3,racks=3,wavelengths=3"
"""Node 0 reaches nodes 10, 13 and 16, one on each rack of group 1, on wavelength 1."""


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ({10: (0,), 13: (0,), 16: (0,)}, "right"),
        ({10: (0, 1), 13: (0, 1)}, "right"),
        ({10: (0, 1, 2), 13: (0, 1, 2), 16: (0, 1, 2)}, "right"),
        ({10: (0, 1), 13: (2,)}, "right"),
        ({10: (0, 1), 13: (1, 0)}, "right"),  # rows of a round have no order
        ({10: (0,), 13: (0, 1)}, "wrong"),  # all of the chunk and half of it
        ({10: (0, 1), 13: (1, 2)}, "wrong"),  # the second half and the first
        ({10: (0, 1), 13: (1, 2), 16: (0, 2)}, "wrong"),
    ],
)
def test_one_signal_is_the_same_bytes_of_the_same_chunks(tmp_path, ports, expected):
    """Receivers of one transmitter receive one signal only where it carries the same bytes for each."""
    rows = [
        sent(number, dst=dst, port=port, lines=(1, 1, 1), path=[1, 0])
        for number, (dst, those) in enumerate(ports.items())
        for port in those
    ]
    plan = by_hand(RAMP, 27, 1, [(0, dst) for dst in ports], rows)
    assert verdict(plan, tmp_path) == expected


def test_signals_of_other_chunks_are_others(tmp_path):
    """Also where they carry as many, and where one stands idle."""
    rows = [sent(0, dst=10, lines=(1, 1, 1), path=[1, 0]), sent(1, chunk=1, dst=13, lines=(1, 1, 1), path=[1, 0])]
    assert verdict(by_hand(RAMP, 27, 2, [(0, 10), (1, 13)], rows), tmp_path) == "wrong"
    rows[1].update(round=1)
    assert verdict(by_hand(RAMP, 27, 2, [(0, 10), (1, 13)], rows), tmp_path) == "right"
    rows[1].update(round=0, transfer=-1, chunk_lo=0, chunk_n=0)
    assert verdict(by_hand(RAMP, 27, 2, [(0, 10)], rows), tmp_path) == "wrong"


def test_signals_that_part_in_a_later_step_of_a_run(tmp_path):
    """Two receivers of one chunk are one signal in the first step, and two where their chunks move in different ways."""
    rows = [sent(0, dst=10, lines=(1, 1, 1), path=[1, 0]), sent(1, dst=13, lines=(1, 1, 1), path=[1, 0])]
    moved = {"kind": "digits", "radices": [2], "digit": 0, "add": 1}

    def of_run(first, second):
        members = [
            {"first_transfer": 0, "shift": first, "parts_step": 0},
            {"first_transfer": 1, "shift": second, "parts_step": 0},
        ]
        runs = [{"step": 0, "count": 2, "members": members}]
        return by_hand(RAMP, 27, 2, [(0, 10), (0, 13)], rows, num_steps=2, runs=runs)

    assert verdict(of_run(moved, moved), tmp_path) == "right"
    assert verdict(of_run(moved, None), tmp_path) == "wrong"


RING = "terarack:nodes=3,wavelengths=2"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "right"),
        ({"lines": (1, 1, 1)}, "right"),
        ({"lines": (0, 2, 1)}, "right"),
        ({"lines": (1, 2, 1)}, "wrong"),  # no third wavelength
        ({"lines": (0, 1, 0)}, "wrong"),  # no distance between wavelengths
        ({"path": [0]}, "wrong"),
        ({"path": [1, 0]}, "wrong"),
        ({"path": [0, 1, 2, 0, 1]}, "wrong"),  # more than once round
        ({"port": 1}, "wrong"),
        ({"port": 1, "path": [5]}, "right"),
        ({"port": 2}, "wrong"),
        ({"dst": 3}, "wrong"),
        ({"chunk": 1}, "wrong"),
        ({"many": 2}, "wrong"),
        ({"src": 1, "path": [1]}, "wrong"),  # what it does not hold
    ],
)
def test_one_circuit_on_a_ring(tmp_path, change, expected):
    """From node 0 to node 2, on segments 0 and 1 or on segment 5 back."""
    plan = by_hand(RING, 3, 1, [(0, 2)], [sent(0, **{"dst": 2, "path": [0, 1], **change})])
    assert verdict(plan, tmp_path) == expected


def ring(count, add):
    """An all_gather on a ring of `count` nodes: a run whose chunks move by `add`."""
    segments = [sent(node, chunk=node, src=node, dst=(node + 1) % count, path=[node]) for node in range(count)]
    shift = {"kind": "digits", "radices": [count], "digit": 0, "add": add}
    runs = [{"step": 0, "count": count - 1, "members": [{"first_transfer": 0, "shift": shift, "parts_step": 0}]}]
    collective = {"name": "all_gather", "num_ranks": count, "num_chunks": count}
    header = {"fabric": f"terarack:nodes={count},wavelengths=1", "collective": collective, "num_steps": count - 1}
    return Drawn("ring", {**header, "runs": runs}, segments)


@pytest.mark.parametrize("count", [3, 4, 7])
def test_runs_are_their_steps(tmp_path, count):
    """A run and its steps one by one have one verdict; chunks that move the wrong way are refused."""
    plan = ring(count, -1)
    assert verdict(plan, tmp_path) == "right"
    listed = [
        {**row, "step": step, "chunk_lo": (row["chunk_lo"] - step) % count}
        for step in range(count - 1)
        for row in plan.rows
    ]
    header = {**plan.header, "runs": []}
    assert verdict(Drawn("listed", header, listed), tmp_path) == "right"
    assert verdict(ring(count, 1), tmp_path) == "wrong"


def test_permutations():
    """Of every kind; what is none is refused."""
    digits = {"kind": "digits", "radices": [2, 3], "digit": 1, "add": -1}
    assert permutation(digits, 6) == [2, 0, 1, 5, 3, 4]
    assert permutation({**digits, "digit": 0}, 6) == [3, 4, 5, 0, 1, 2]
    assert permutation({"kind": "xor", "mask": 2}, 4) == [2, 3, 0, 1]
    with pytest.raises(MalformedError, match="no permutation of 3"):
        permutation({"kind": "xor", "mask": 2}, 3)
    table = {"kind": "table", "values": deltas([1, 2, 0])}
    assert permutation(table, 3) == [1, 2, 0]
    with pytest.raises(MalformedError, match="3 values, not 4"):
        permutation(table, 4)
    through = {
        "kind": "through",
        "label": deltas([2, 0, 1]),
        "inner": {"kind": "digits", "radices": [3], "digit": 0, "add": 1},
    }
    assert permutation(through, 3) == [1, 2, 0]  # labels 2 -> 0, 0 -> 1, 1 -> 2 are those of elements 1, 2, 0


def deltas(values):
    """Values as headers hold them: differences."""
    raw = np.diff(values, prepend=0).astype("<i4").tobytes()
    return base64.b64encode(zlib.compress(raw)).decode("ascii")


def test_what_the_library_writes_is_the_same_in_csv_and_json(tmp_path):
    """Rows, header and verdict."""
    plan = opticcl.compile("oddl:shape=2x3", "all_to_all", "1 MB", algorithm="by_dimension")
    paths = [tmp_path / f"plan{suffix}" for suffix in (".json", ".csv")]
    for path in paths:
        plan.save(path)
    assert read_plan(paths[0]) == read_plan(paths[1])
    assert [judge(path).verdict for path in paths] == ["right", "right"]


def test_what_it_does_not_know_it_does_not_judge(tmp_path):
    """Failed parts, other machines, fields of the header that are new."""
    row = sent(0, dst=2, path=[0, 1])
    for fabric, more in ((f"{RING},failed=fibre:1", {}), ("ideal:nodes=3", {}), (RING, {"phases": []})):
        assert verdict(by_hand(fabric, 3, 1, [(0, 2)], [row], **more), tmp_path) == "not_judged"


def test_command(tmp_path, capsys):
    """`python -m tests.independent.judge FILE ...` prints a line a file; exit code 1 where one is not right."""
    right = by_hand(RING, 3, 1, [(0, 2)], [sent(0, dst=2, path=[0, 1])]).write(tmp_path, ".json")
    assert main([str(right)]) == 0
    assert capsys.readouterr().out == f"{right}: right\n"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({**json.loads(right.read_text()), "columns": {}}))
    assert main([str(right), str(wrong)]) == 1
    assert capsys.readouterr().out.endswith(f"{wrong}: wrong: no column step\n")
