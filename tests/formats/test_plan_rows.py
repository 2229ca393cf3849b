"""Rows of plan files: drawn ones against the parser of the independent judge, and rows that phases contradict."""

import json
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.independent.drawn import Drawn
from tests.independent.plan_rows import read_plan
from tests.profiles import examples

import opticcl
from opticcl.errors import PlanFileError
from opticcl.formats.plan_read import read_plan_file

NODES = [4, 0, 7, 2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for files that every example writes anew."""
    return tmp_path_factory.mktemp("rows")


def drawn_rows(random):
    """Rows of up to four steps: numbers with gaps, contents that share a number, idle circuits, columns that may be absent."""
    more = [name for name in ("chunk_step", "waveguide") if random.random() < 0.5]
    rows, steps = [], random.randint(1, 4)
    for step in range(steps):
        carried = []
        for number in random.sample([-1, 0, 1, 5, 9, 9], random.randint(1, 6)):
            src, dst = random.sample(NODES, 2)
            about = {
                "transfer": number,
                "src": src,
                "dst": dst,
                "chunk_lo": random.randrange(4),
                "chunk_n": random.randint(1, 3),
            }
            carried.append(
                about
                | {"parts": random.choice([1, 1, 2]), "op": random.randrange(4), "chunk_step": random.randint(1, 2)}
            )
        for number in sorted(random.sample(range(4), random.randint(1, 3))):
            distance = random.randint(1, 2)
            for _ in range(random.randint(1, 4)):
                row = {"step": step, "round": number, **random.choice(carried)}
                row |= {name: random.randrange(9) for name in ("port", "wavelength_lo", "wavelength_n")}
                row |= {"wavelength_step": distance if random.random() < 0.9 else 3, "waveguide": random.randrange(3)}
                row["path"] = [random.randrange(99) for _ in range(random.randrange(4))]
                rows.append(
                    {
                        name: cell
                        for name, cell in row.items()
                        if name in more or name not in ("chunk_step", "waveguide")
                    }
                )
    return rows, steps


def columns_of(circuits):
    """A tuple for each circuit of a round."""
    paths = [circuits.hops[a:b].tolist() for a, b in zip(circuits.hop_offsets, circuits.hop_offsets[1:], strict=False)]
    names = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n")
    guides = [-1] * len(circuits) if circuits.waveguide is None else circuits.waveguide.tolist()
    return list(zip(*(getattr(circuits, name).tolist() for name in names), guides, paths, strict=True))


@examples(25)
@given(st.integers(0, 2**32), st.sampled_from([".json", ".csv"]), st.booleans())
def test_transfers_and_circuits(folder, seed, suffix, job):
    """Of every step and round."""
    rows, steps = drawn_rows(Random(seed))
    ranks = NODES if job else list(range(8))
    header = {"format": "opticcl-plan", "version": 3, "opticcl": "1", "fabric": "ideal:nodes=8", "algorithm": "any"}
    header |= {"num_steps": steps, "size_bytes": 8, "nodes": NODES if job else None}
    header["collective"] = {"name": "all_reduce", "num_ranks": len(ranks), "num_chunks": 8}
    path = Drawn("rows", header, rows).write(folder, suffix)
    due, read = read_plan(path), read_plan_file(path)
    assert (read.size_bytes, read.algorithm, read.written_by) == (8, "any", "1")
    for number, step in enumerate(due.steps):
        transfers = sorted(step.transfers, key=lambda one: one.number)
        found = read.plan.schedule.step(number)
        ones = np.ones(len(found), int)
        columns = [found.src, found.dst, found.chunk_lo, found.chunk_n, found.op]
        columns += [ones if column is None else column for column in (found.parts, found.chunk_step)]
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
            (ranks.index(t.src), ranks.index(t.dst), t.chunk_lo, t.chunk_n, t.op, t.parts, t.chunk_step)
            for t in transfers
        ]
        assert found.hops is None
        rounds = read.plan.rounds(number)
        for one, circuits in zip(rounds, step.rounds, strict=True):
            assert columns_of(one) == [
                (-1 if c.carries is None else transfers.index(c.carries), c.src, c.dst, c.port, *c.wavelengths[:2],
                 c.waveguide, list(c.path))
                for c in circuits
            ]  # fmt: skip
            distances = {c.wavelengths[2] for c in circuits}
            assert one.wavelength_step == (distances.pop() if len(distances) == 1 else 0)


@pytest.fixture(scope="module")
def ring(folder):
    """A plan of phases as the object of its file."""
    opticcl.compile("ideal:nodes=4", "all_to_all", 1000, algorithm="ring").save(folder / "ring.json")
    return json.loads((folder / "ring.json").read_text("utf-8"))


def changed(folder, ring, change):
    """The plan of a file whose columns are changed."""
    whole = {"header": ring["header"], "columns": {name: list(cells) for name, cells in ring["columns"].items()}}
    change(whole["columns"])
    (folder / "changed.json").write_text(json.dumps(whole), "utf-8")
    return read_plan_file(folder / "changed.json").plan


@pytest.mark.parametrize("column", ["src", "dst", "chunk_lo", "chunk_n", "op", "parts", "transfer"])
@pytest.mark.parametrize("row", [0, 2, 5])
def test_rows_that_phases_contradict(folder, ring, column, row):
    """The transfer is named; what the phases define is not changed by it."""

    def change(columns):
        columns[column][row] = columns[column][row] + 1 if column != "transfer" else 9

    plan = changed(folder, ring, change)
    number = 9 if column == "transfer" else ring["columns"]["transfer"][row]
    with pytest.raises(PlanFileError, match=f"transfer {number} is not what the phases in its header say"):
        [plan.rounds(i) for i in range(plan.schedule.num_steps)]


def test_transfers_of_phases_without_rows(folder, ring):
    """They have no circuits; the others keep their numbers."""

    def change(columns):
        for cells in columns.values():
            del cells[1]

    plan = changed(folder, ring, change)
    assert plan.rounds(0)[0].transfer.tolist() == [0, 2, 3]
    assert len(plan.schedule.step(0)) == 4


HOPS = "a path has an empty or impossible hop"


@pytest.mark.parametrize(
    ("column", "row", "cell", "said"),
    [
        ("src", 3, None, "row 3: column 'src' is empty"),
        ("dst", 6, None, "row 6: column 'dst' is empty"),
        ("src", 3, 2**31, "row 3: src=2147483648 is beyond 32 bits"),
        ("src", 5, -(2**31) - 1, "row 5: src=-2147483649 is beyond 32 bits"),
        ("port", 5, 2**31 - 1, ""),
        ("port", 5, -(2**31), ""),
        ("path", 2, [2**31], f"rows 0 to 3: {HOPS}"),
        ("path", 6, [-(2**31) - 1], f"rows 4 to 7: {HOPS}"),
        ("path", 6, [None], f"rows 4 to 7: {HOPS}"),
        ("path", 2, [2**31 - 1, -(2**31)], ""),
        ("path", 2, None, ""),
        ("transfer", 6, -2, "row 6: transfer -2 is negative"),
        ("step", 2, None, "column 'step' or 'round' has empty cells"),
        ("round", 2, None, "column 'step' or 'round' has empty cells"),
        ("step", 1, 9, "row 1: step 9 is none of 0 to"),
        ("step", 1, -1, "row 1: step -1 is none of 0 to"),
        ("round", 4, -1, "row 4: round -1 is negative"),
        ("step", 5, 0, "row 5: step 0 round 0 comes late"),
        ("round", 1, 1, "row 2: step 0 round 0 comes late"),
    ],
)
def test_cells_that_cannot_be_are_refused(folder, ring, column, row, cell, said):
    """With their row; the largest numbers are read."""

    def read():
        plan = changed(folder, ring, lambda columns: columns[column].__setitem__(row, cell))
        return [plan.rounds(i) for i in range(plan.schedule.num_steps)]

    if not said:
        assert sum(len(circuits) for rounds in read() for circuits in rounds) == len(ring["columns"]["src"])
        return
    with pytest.raises(PlanFileError, match=said):
        read()
