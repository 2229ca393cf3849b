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
from opticcl.formats import plan_write
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


def changed(folder, ring, change=len, **header):
    """The plan of a file whose columns and fields of the header are changed."""
    columns = {name: list(cells) for name, cells in ring["columns"].items()}
    change(columns)
    whole = {"header": ring["header"] | header, "columns": columns}
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
        columns["transfer"][2] = -1

    plan = changed(folder, ring, change)
    assert plan.rounds(0)[0].transfer.tolist() == [0, 2, -1]
    assert len(plan.schedule.step(0)) == 4


def in_phases(rows, **phase):
    """Field `steps` of a header with one phase, of a message with three chunks for each rank."""
    return {"radices": [4], "parts": [[[0, 1, 4], [-1, 1, 3]]], "phases": [{"rows": {"num_rows": 1, **rows}, **phase}]}


@pytest.mark.parametrize(
    ("count", "apart", "wrong"),
    [(2, [2, 2, 2, 2], ""), (2, [2, 1, 2, 2], "transfer 1 is"), (2, None, "transfer 0 is"), (1, [5, 1, 7, 1], "")],
)
def test_distances_that_phases_contradict(folder, ring, count, apart, wrong):
    """Of several chunks; one chunk is no distance from itself."""

    def change(columns):
        for cells in columns.values():
            del cells[4:]
        columns |= {"chunk_lo": [9, 0, 3, 6], "chunk_n": [count] * 4, "parts": [1] * 4}
        columns |= {} if apart is None else {"chunk_step": apart}

    steps = in_phases({"dst": 1, "lo": 3, "unit_count": count, "unit_step": 2, "op": 2}, moves=[0])
    collective = ring["header"]["collective"] | {"num_chunks": 12}
    plan = changed(folder, ring, change, steps=steps, num_steps=1, collective=collective)
    if not wrong:
        assert plan.rounds(0)[0].transfer.tolist() == [0, 1, 2, 3]
        return
    with pytest.raises(PlanFileError, match=f"{wrong} not what the phases in its header say"):
        plan.rounds(0)


def test_transfers_that_phases_do_not_have(folder, ring):
    """One number for two transfers, and a number behind that of the only one."""

    def twice(columns):
        for cells in columns.values():
            cells[3:] = [cells[2]]
        columns["chunk_step"] = [1, 1, 1, 2]

    def second(columns):
        for cells in columns.values():
            del cells[1:]
        columns["transfer"] = [1]

    collective = ring["header"]["collective"] | {"num_chunks": 12}
    only = in_phases({"dst": 1, "lo": 3, "op": 2})
    for change, header, number in (
        (
            twice,
            {"steps": ring["header"]["steps"] | {"phases": [ring["header"]["steps"]["phases"][0] | {"count": 1}]}},
            2,
        ),
        (second, {"steps": only, "collective": collective}, 1),
        (lambda columns: columns["transfer"].__setitem__(3, 4), {"num_steps": 3}, 4),
    ):
        plan = changed(folder, ring, change, **{"num_steps": 1} | header)
        with pytest.raises(PlanFileError, match=f"transfer {number} is not what the phases in its header say"):
            plan.rounds(0)


@pytest.mark.parametrize(("same", "lengths"), [(False, [1, 1, 1]), (True, [3])])
def test_circuits_of_steps_that_are_alike(folder, ring, same, lengths):
    """The rows list them once or, where the header does not say that they are the same, for each step."""

    def change(columns):
        columns |= {"chunk_lo": [3, 0, 1, 2] * 3, "parts": [1] * 12}
        for cells in columns.values():
            del cells[4 * len(lengths) :]

    phase = {"rows": {"num_rows": 1, "dst": 1, "lo": 3, "op": 2}, "moves": [0], "count": 3, "same_circuits": same}
    plan = changed(folder, ring, change, steps=ring["header"]["steps"] | {"phases": [phase]})
    assert [len(steps) for steps in plan.schedule.step_classes()] == lengths
    assert [len(plan.rounds(steps.start)[0]) for steps in plan.schedule.step_classes()] == [4] * len(lengths)


@pytest.mark.parametrize(("parts_step", "lengths"), [(0, [3]), (1, [1, 1, 1])])
def test_steps_of_a_run_that_are_alike(folder, ring, parts_step, lengths):
    """They differ in the numbers of chunks alone unless contributions become more."""

    def change(columns):
        for cells in columns.values():
            del cells[4:]

    shift = {"kind": "digits", "radices": [4], "digit": 0, "add": -1}
    run = {"step": 0, "count": 3, "members": [{"first_transfer": 0, "shift": shift, "parts_step": parts_step}]}
    plan = changed(folder, ring, change, steps=None, version=3, runs=[run])
    assert [len(steps) for steps in plan.schedule.step_classes()] == lengths
    assert plan.schedule.step(2).chunk_lo.tolist() == [1, 2, 3, 0]
    assert [len(steps) for steps in changed(folder, ring, steps=None, version=3).schedule.step_classes()] == [1] * 3


def test_steps_without_transfers(folder, ring):
    """A step that no row has, and one whose rows are all idle, behind one of rounds; distances that differ are none."""

    def change(columns):
        for cells in columns.values():
            del cells[4:8]
        columns["transfer"][4:] = [-1] * 4
        columns["round"][:4] = [0, 0, 0, 2]
        columns["wavelength_step"][2:4] = [2, 2]

    plan = changed(folder, ring, change, steps=None, version=1)
    assert [(len(circuits), circuits.wavelength_step) for circuits in plan.rounds(0)] == [(3, 0), (1, 2)]
    assert [len(plan.schedule.step(i)) for i in range(3)] == [4, 0, 0]
    assert plan.rounds(1) == ()
    assert [circuits.transfer.tolist() for circuits in plan.rounds(2)] == [[-1] * 4]


def test_operations_that_do_not_exist(folder, ring):
    """Whatever their number, they are none of those that do."""

    def change(columns):
        columns |= {"op": [-1, 256, 3, 1 << 30] * 3, "chunk_n": [1, 2, 1, 2] * 3, "parts": [1, 2, 1, 2] * 3}

    plan = changed(folder, ring, change, steps=None, version=1)
    assert plan.schedule.step(1).op.tolist() == [255, 255, 3, 255]


def test_most_rows_and_wrong_counts(folder, ring, monkeypatch):
    """A file of as many rows as may be; steps that the phases do not have."""
    with pytest.raises(PlanFileError, match="num_steps=4, but the phases have 3"):
        changed(folder, ring, num_steps=4)
    monkeypatch.setitem(plan_write.MOST_ROWS, ".json", 12)
    assert changed(folder, ring).schedule.num_steps == 3
    monkeypatch.setitem(plan_write.MOST_ROWS, ".json", 11)
    with pytest.raises(PlanFileError, match="12 circuits are more than 11"):
        changed(folder, ring)


HOPS = "a path has an empty or impossible hop"


@pytest.mark.parametrize(
    ("column", "row", "cell", "said"),
    [
        ("src", 0, None, "row 0: column 'src' is empty"),
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


def test_the_first_cell_beyond_32_bits_is_named(folder, ring):
    """Not the smallest number before it."""
    plan = changed(folder, ring, lambda columns: columns.update(port=[0, -(2**31), 2**31 - 1, 2**31] * 3))
    with pytest.raises(PlanFileError, match="row 3: port=2147483648 is beyond 32 bits"):
        plan.rounds(0)
