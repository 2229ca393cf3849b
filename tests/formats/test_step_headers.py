"""Runs and phases in the headers of plan files: drawn ones against the parser of the independent judge, and wrong ones."""

import base64
import re
import zlib
from dataclasses import replace
from itertools import pairwise
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.independent.phases import Phases
from tests.independent.plan_rows import permutation, unpacked
from tests.profiles import examples

import opticcl
from opticcl.collective import collective, custom_collective
from opticcl.formats import plan_phases
from opticcl.formats.plan_phases import StepsHeader, file_steps, header_of_steps, read_steps
from opticcl.formats.plan_runs import RunHeader, num_file_steps, read_runs
from opticcl.ir import CircuitPlan, Schedule, Transfers
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.phases import Phase, PhaseRows, Steps


def packed(values, width="<i4"):
    """Differences of numbers, deflated, in base 64."""
    raw = np.diff(np.asarray(values, np.int64), prepend=0).astype(width).tobytes()
    return base64.b64encode(zlib.compress(raw)).decode("ascii")


def growing(*differences):
    """Packed values with these differences."""
    return base64.b64encode(zlib.compress(np.array(differences, "<i4").tobytes())).decode("ascii")


# --- runs ---------------------------------------------------------------------------------------------------------------

RADICES = {1: [1], 6: [2, 3], 8: [2, 2, 2], 12: [3, 1, 4]}
"""Digits of a number of chunks."""


def drawn_shift(random, count):
    """A permutation of `count` chunks, of any kind."""
    digit = random.randrange(len(RADICES[count]))
    digits = {"kind": "digits", "radices": RADICES[count], "digit": digit, "add": random.randint(-5, 5)}
    xor = {"kind": "xor", "mask": random.randrange(count)} if count in (1, 8) else digits
    table = {"kind": "table", "values": packed(random.sample(range(count), count))}
    inner = random.choice([digits, xor])
    through = {"kind": "through", "label": packed(random.sample(range(count), count)), "inner": inner}
    return random.choice([None, digits, xor, table, through])


def drawn_run(random, step, count):
    """A run of up to five steps with up to three members."""
    firsts = sorted({0, *random.sample(range(1, 9), random.randint(0, 2))})
    members = [
        {"first_transfer": first, "shift": drawn_shift(random, count), "parts_step": random.randint(0, 2)}
        for first in firsts
    ]
    return {"step": step, "count": random.randint(1, 5), "members": members}


@examples(60)
@given(st.integers(0, 2**32))
def test_steps_of_runs(seed):
    """Chunks and contributions of every step, by images of one step after the other."""
    random = Random(seed)
    count = random.choice([*RADICES])
    steps = random.randint(1, 5)
    runs = [drawn_run(random, step, count) for step in range(steps) if random.random() < 0.6]
    rows = [
        [(random.randrange(count), random.randint(1, 3), n) for n in range(random.randint(1, 9))] for _ in range(steps)
    ]
    counted = random.random() < 0.7

    def base(step):
        lo, parts, numbers = map(np.array, zip(*rows[step], strict=True))
        found = Transfers.of(numbers, numbers + 1, lo, 1, 0, parts if counted else None)
        return found, numbers

    kept = collective("all_to_all", 1, count)
    total = sum(run["count"] for run in runs) + steps - len(runs)
    headers = msgspec.convert(runs, list[RunHeader])
    assert num_file_steps(total, headers, (1, count + 4)) == steps
    step, ranges, grows = read_runs(headers, steps, base, kept)
    assert grows == any(member["parts_step"] for run in runs for member in run["members"])
    first = 0
    of_step = {run["step"]: run for run in runs}
    for number in range(steps):
        run = of_step.get(number, {"count": 1, "members": [{"first_transfer": 0, "shift": None, "parts_step": 0}]})
        assert ranges[number] == range(first, first + run["count"])
        for turn in range(run["count"]):
            due = []
            for lo, parts, n in rows[number]:
                member = [one for one in run["members"] if one["first_transfer"] <= n][-1]
                for _ in range(turn if member["shift"] else 0):
                    lo = permutation(member["shift"], count)[lo]
                due.append((n, n + 1, lo, 1, (parts if counted else 1) + turn * member["parts_step"]))
            found = step(first + turn)
            columns = (found.src, found.dst, found.chunk_lo, found.chunk_n, found.parts)
            assert list(zip(*(column.tolist() for column in columns), strict=True)) == due
        first += run["count"]
    assert len(ranges) == steps


def test_runs_of_sums_have_no_parts():
    """A collective that sums keeps no contributions apart."""
    (run,) = msgspec.convert(
        [{"step": 0, "count": 2, "members": [{"shift": {"kind": "xor", "mask": 1}}]}], list[RunHeader]
    )
    step, _, grows = read_runs([run], 1, lambda i: (Transfers.of([0], [1], [0], [1], [1]), np.zeros(1, int)), SUM)
    assert [(step(i).chunk_lo.tolist(), step(i).parts) for i in range(2)] == [([0], None), ([1], None)]
    assert not grows


SUM, APART = collective("all_reduce", 4, 4), collective("all_to_all", 4, 16)


def digits(**more):
    """Members with a shift of digits."""
    return [{"shift": {"kind": "digits", "radices": [4], "digit": 0, "add": 1, **more}}]


def shifted(**shift):
    """Members with any shift."""
    return [{"shift": shift}]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([{"parts_step": 1}], "runs[0].members[0].parts_step=1: all_reduce does not keep parts apart; try 0"),
        (digits(radices=[]), "runs[0].members[0].shift: radices=[]: 1 to 64 numbers of 1 or more"),
        (digits(radices=[4, *[1] * 64]), "1 to 64 numbers of 1 or more"),
        (digits(radices=[-2, -2]), "1 to 64 numbers of 1 or more"),
        (digits(radices=[0, 4]), "1 to 64 numbers of 1 or more"),
        (digits(add=2**31), "add=2147483648 is beyond 32 bits"),
        (digits(add=-(2**31) - 1), "is beyond 32 bits"),
        (digits(radices=[5]), "digit 0 of [5] does not permute 4 elements"),
        (digits(digit=1), "digit 1 of [4] does not permute 4 elements"),
        (digits(digit=-1), "digit -1 of [4] does not permute 4 elements"),
        (shifted(kind="xor", mask=4), "mask=4 is not 0 to 3"),
        (shifted(kind="xor", mask=-1), "mask=-1 is not 0 to 3"),
        (shifted(kind="table", values=packed([0, 1, 2])), "not 4 values"),
        (shifted(kind="table", values=packed([0, 1, 2, 3, 4])), "not 4 values"),
        (shifted(kind="table", values=packed([0, 1, 2, 2])), "a table of 4 values does not permute 4 elements"),
        (shifted(kind="table", values="AAAA"), "runs[0].members[0].shift: "),
        (shifted(kind="table", values="*" + packed([1, 0, 2, 3])), "runs[0].members[0].shift: "),
        (shifted(kind="table", values="A"), "runs[0].members[0].shift: "),
        (shifted(kind="through", label=packed([0, 1, 2, 9]), inner={"kind": "xor", "mask": 1}), "members[0].shift: "),
        (shifted(kind="through", label=packed([0, 1, 2, 2]), inner={"kind": "xor", "mask": 1}), "does not permute"),
        ([{}, {"first_transfer": 1, "shift": {"kind": "xor", "mask": 9}}], "runs[0].members[1].shift: mask=9"),
    ],
)
def test_shifts_that_cannot_be_are_refused(members, said):
    """With the member, before any step is asked for."""
    (run,) = msgspec.convert([{"step": 0, "count": 2, "members": members}], list[RunHeader])
    with pytest.raises(ValueError, match=re.escape(said)):
        read_runs([run], 1, lambda i: pytest.fail("no step is needed"), SUM)


@pytest.mark.parametrize(
    ("parts_step", "count", "right"), [(2**30, 2, False), (-(2**30), 2, False), (2**30 - 1, 2, True)]
)
def test_contributions_have_32_bits(parts_step, count, right):
    """Whatever the first step has."""
    (run,) = msgspec.convert([{"step": 0, "count": count, "members": [{"parts_step": parts_step}]}], list[RunHeader])
    if right:
        assert read_runs([run], 1, lambda i: None, APART)[2]
        return
    with pytest.raises(ValueError, match="leads beyond 32 bits"):
        read_runs([run], 1, lambda i: None, APART)


def a_run(step, count=2, firsts=(0,)):
    """A run whose members move nothing."""
    return {"step": step, "count": count, "members": [{"first_transfer": first} for first in firsts]}


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([a_run(0, 6)], ""),
        ([a_run(0, 7)], "runs[0].count=7 is not 1 to 6"),
        ([a_run(0, 0)], "runs[0].count=0 is not 1 to 6"),
        ([a_run(0), a_run(3)], ""),
        ([a_run(1), a_run(1)], "runs[1].step=1 does not follow 1"),
        ([a_run(1), a_run(0)], "runs[1].step=0 does not follow 1"),
        ([a_run(0, 2, ())], "runs[0].members has 0 entries; 1 to 64"),
        ([a_run(0, 2, range(64))], ""),
        ([a_run(0, 2, range(65))], "runs[0].members has 65 entries; 1 to 64"),
        ([a_run(0, 2, (1,))], "first_transfer=[1]; they begin with 0 and ascend"),
        ([a_run(0, 2, (0, 2, 2))], "first_transfer=[0, 2, 2]; they begin with 0 and ascend"),
        ([a_run(-1)], "runs[0].step=-1 and num_steps=8 leave 7 steps of rows"),
        ([a_run(6)], ""),
        ([a_run(7)], "runs[0].step=7 and num_steps=8 leave 7 steps of rows"),
        ([a_run(0), a_run(1, 6), a_run(2, 6)], "runs[2].step=2 and num_steps=8 leave -3 steps of rows"),
    ],
)
def test_steps_of_the_file(runs, said):
    """Of a plan of eight steps, of ranks and chunks that are six together."""
    headers = msgspec.convert(runs, list[RunHeader])
    if not said:
        assert num_file_steps(8, headers, (2, 4)) == 8 - sum(run["count"] - 1 for run in runs)
        return
    with pytest.raises(ValueError, match=re.escape(said)):
        num_file_steps(8, headers, (2, 4))


# --- phases -------------------------------------------------------------------------------------------------------------

SPACES = [
    ([4], [[[0, 1, 4]]]),
    ([2, 3], [[[1, 1, 3], [-1, 1, 4], [0, 1, 2]], [[-1, 1, 2]]]),
    ([6], [[[0, 2, 3], [-1, 1, 5], [0, 1, 2]]]),
    ([2, 1, 6], [[[-1, 1, 1], [2, 3, 2], [0, 1, 2], [2, 1, 3]], [[0, 1, 2], [-1, 1, 3]]]),
]
"""Radices, and parts of the message with digits in several places."""


def drawn_steps(random):
    """Field `steps` of a header: rows of one chunk of each digit, some columns packed, and phases that rows list."""
    radices, parts = random.choice(SPACES)
    phases = []
    for _ in range(random.randint(1, 3)):
        if random.random() < 0.2:
            phases.append({"states_paths": True} if random.random() < 0.5 else {})
            continue
        n, count = random.randint(1, 4), random.randint(1, 3)
        moves = [d for d in range(len(radices)) if random.random() < 0.6]
        columns = {
            "part": [random.randrange(len(parts)) for _ in range(n)],
            "op": [random.randrange(4) for _ in range(n)],
        }
        columns["src"] = [0 if d in moves else random.randrange(r) for _ in range(n) for d, r in enumerate(radices)]
        for name in ("dst", "lo"):
            columns[name] = [random.randrange(r) for _ in range(n) for r in radices]
        columns["shift"] = [random.randint(-2, 2) if d in moves else 0 for _ in range(n) for d in range(len(radices))]
        columns["parts"] = [random.randint(1, 9) for _ in range(n)]
        columns["parts_step"] = [random.randint(0, 2) for _ in range(n)]
        whole = [int(np.prod([r for d, _, r in parts[part] if d < 0])) for part in columns["part"]]
        columns["unit_lo"] = [random.randrange(units) for units in whole]
        columns["unit_step"] = [random.randint(1, 2) for _ in range(n)]
        room = zip(whole, columns["unit_lo"], columns["unit_step"], strict=True)
        columns["unit_count"] = [random.randint(1, (units - 1 - lo) // by + 1) for units, lo, by in room]
        rows = {"num_rows": n}
        for name, values in columns.items():
            rows[name] = values[0] if len({*values}) == 1 and random.random() < 0.8 else packed(values)
        phase = {"rows": rows, "moves": moves, "count": count, "same_circuits": random.random() < 0.5}
        bundles = sorted({0, *random.sample(range(n), random.randint(0, n))})
        phase["bundles"] = packed(bundles) if random.random() < 0.6 else 0
        if not moves and random.random() < 0.7:
            lengths = [random.randint(0, 3) for _ in range(n)]
            phase |= {"lengths": packed(lengths), "hops": packed([random.randrange(99) for _ in range(sum(lengths))])}
        phases.append(phase)
    header = {"radices": radices, "parts": parts, "phases": phases}
    ranks = int(np.prod(radices))
    if random.random() < 0.5:
        header["order"] = packed(random.sample(range(ranks), ranks))
    return header, ranks, sum(int(np.prod([r for _, _, r in part])) for part in parts)


def numbers(text, count):
    """Values as the independent judge unpacks them."""
    if count is None:
        return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4").astype(np.int64)
    return unpacked(text, count)


def paths_of(phase):
    """Links of each row."""
    lengths = np.cumsum(numbers(phase["lengths"], None)).tolist()
    hops = np.cumsum(numbers(phase["hops"], None)).tolist()
    return [hops[sum(lengths[:r]) : sum(lengths[: r + 1])] for r in range(len(lengths))]


@examples(80)
@given(st.integers(0, 2**32))
def test_steps_of_phases(seed):
    """Transfers of every step, and the steps that each step of the file stands for, by the judge's parser."""
    random = Random(seed)
    header, ranks, chunks = drawn_steps(random)
    due = Phases(header, ranks, chunks, numbers)
    asked = []

    def listed(step, stated):
        asked.append((step, stated))
        return Transfers.of([0], [1], [0], [1], [0])

    steps, ranges = read_steps(msgspec.convert(header, StepsHeader), of_size(ranks, chunks), listed)
    files = due.file_steps()
    assert [(one.start, len(one)) for one in ranges] == [(first, many) for first, many, _ in files]
    assert steps.num_steps == due.num_steps
    for i in range(due.num_steps):
        number = max(n for n, start in enumerate(due.starts[:-1]) if start <= i)
        phase = header["phases"][number]
        found = steps(i)
        if phase.get("rows") is None:
            at = [first for first, _, _ in files].index(i)
            assert asked[-1] == (at, phase.get("states_paths", False))
            continue
        lists = [
            tuple(range(lo, lo + n * apart, apart))
            for lo, n, apart in zip(found.chunk_lo.tolist(), found.chunk_n.tolist(), apart_of(found), strict=True)
        ]
        parts = np.ones(len(found), int) if found.parts is None else found.parts
        columns = (found.src.tolist(), found.dst.tolist(), lists, found.op.tolist(), parts.tolist())
        assert list(zip(*columns, strict=True)) == [tuple(one) for one in due.step(i)]
        assert (found.hops is None) == ("hops" not in phase)
        if "hops" in phase:
            said = [found.hops[a:b].tolist() for a, b in pairwise(found.hop_offsets)]
            kept = [r for r, row in enumerate(due.phases[number].rows) if row["src"] != row["dst"]]
            assert said == [paths_of(phase)[r] for r in kept]


def of_size(ranks, chunks):
    """A collective of that many ranks and chunks, all of them at all ranks."""
    return custom_collective("any", np.ones((chunks, ranks)), np.ones((chunks, ranks)), False)


def apart_of(transfers):
    """Distances of chunks."""
    return [1] * len(transfers) if transfers.chunk_step is None else transfers.chunk_step.tolist()


ROWS = {"num_rows": 2, "src": packed([0, 1]), "dst": packed([1, 0])}
PHASE = {"rows": ROWS, "count": 2}
RIGHT = {"radices": [4], "parts": [[[0, 1, 4]]], "phases": [PHASE]}


def in_phase(**more):
    """A change of the phase."""
    return {"phases": [PHASE, {**PHASE, **more}]}


def in_rows(**more):
    """A change of the rows of the phase."""
    return in_phase(rows={**ROWS, **more})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"radices": []}, "steps: radices=[]: 1 to 64 numbers of 1 or more"),
        ({"radices": [4, *[1] * 63], "phases": []}, ""),
        ({"radices": [4, *[1] * 64]}, "1 to 64 numbers of 1 or more"),
        ({"radices": [0, 4]}, "1 to 64 numbers of 1 or more"),
        ({"radices": [-2, -2]}, "1 to 64 numbers of 1 or more"),
        ({"radices": [5]}, "radices=[5] make 5 ranks, not 4"),
        ({"order": packed([0, 1, 2])}, "not 4 values"),
        ({"order": "AAAA"}, "steps: "),
        ({"order": "*" + packed([0, 1, 2, 3])}, "steps: "),
        (in_phase(bundles="*" + packed([0, 1])), "steps: "),
        ({"order": packed([0, 1, 2, 2])}, "steps: "),
        ({"parts": [[[0, 1, 4]], [[-1, 1, 1]]]}, "parts have 5 chunks, not 4"),
        ({"parts": [[[0, 1]]]}, "parts[0]: [0, 1] is not a digit, stride and radix"),
        ({"parts": [[[0, 1, 4, 1]]]}, "is not a digit, stride and radix"),
        ({"parts": [[[1, 1, 4]]]}, "is not a digit, stride and radix"),
        ({"parts": [[[-2, 1, 4]]]}, "is not a digit, stride and radix"),
        ({"parts": [[[0, 1, 0]]]}, "is not a digit, stride and radix"),
        ({"parts": [[[0, 0, 4]]]}, "is not a digit, stride and radix"),
        ({"parts": [[[0, 2, 2], [0, 1, 2]]]}, ""),
        ({"parts": [[[0, 2, 4]]]}, "parts[0]: digit 0 is not made of the strides [2]"),
        ({"parts": [[[0, 1, 2], [0, 3, 2]]]}, "parts[0]: digit 0 is not made of the strides [1, 3]"),
        ({"parts": [[[0, 1, 2], [-1, 1, 2]]]}, "parts[0]: digit 0 has 2 values there, not 4"),
        ({"parts": [[[-1, 1, 2], [-1, 2, 2]]]}, "parts[0]: digit -1 has 4 values there, not 4"),
        ({"parts": [[[-1, 1, 4]]]}, ""),
        (in_phase(count=0), "phases[1].count=0 is not 1 to 8"),
        (in_phase(count=8), ""),
        (in_phase(count=9), "phases[1].count=9 is not 1 to 8"),
        (in_phase(rows=None), "phases[1] has no rows, but 2 steps"),
        (in_phase(rows=None, count=1), ""),
        (in_phase(rows=None, count=1, moves=[0]), "phases[1] has no rows, but 1 steps"),
        (in_phase(rows=None, count=1, hops=packed([])), "phases[1] has no rows, but 1 steps"),
        (in_phase(moves=[1]), "phases[1].moves=[1]: digits are 0 to 0"),
        (in_phase(moves=[-1]), "phases[1].moves=[-1]: digits are 0 to 0"),
        (in_phase(hops=packed([])), "phases[1] has hops without lengths, or lengths without hops"),
        (in_phase(lengths=packed([0, 0])), "phases[1] has hops without lengths, or lengths without hops"),
        (in_phase(hops=packed([]), lengths=packed([0, 0])), ""),
        (in_phase(hops=packed([3]), lengths=packed([0, 1])), ""),
        (in_phase(hops=packed([3]), lengths=packed([-1, 2])), "phases[1].lengths: paths of 1 links; 0 or more each"),
        (in_phase(hops=packed([3]), lengths=packed([0, 2**27])), "phases[1].lengths: paths of 134,217,728 links"),
        (in_phase(hops=packed([3]), lengths=packed([0, 2])), "not 2 values"),
        (in_phase(hops=packed([3]), lengths=packed([1])), "not 2 values"),
        (in_phase(bundles=packed([0, 1])), ""),
        (in_phase(bundles=packed([1])), "phases[1].bundles do not ascend from 0 below 2 rows"),
        (in_phase(bundles=packed([0, 2])), "bundles do not ascend"),
        (in_phase(bundles=packed([0, 0])), "bundles do not ascend"),
        (in_phase(bundles=packed([])), "bundles do not ascend"),
        (in_phase(bundles=1), "steps: "),
        (in_rows(num_rows=0), "phases have 2 rows; 1 or more each, 16,777,216 together"),
        (in_rows(num_rows=2**24), "phases have 16,777,218 rows"),
        (in_rows(src=2**31), "phases[1].rows.src=2147483648 is beyond 32 bits"),
        (in_rows(unit_lo=-(2**31) - 1), "phases[1].rows.unit_lo=-2147483649 is beyond 32 bits"),
        (in_rows(parts=2**31 - 1), ""),
        (in_rows(parts=packed([1])), "not 2 values"),
        (in_rows(parts=packed([1, 1, 1])), "not 2 values"),
        (in_rows(parts=packed([2**31 - 1, 1])), ""),
        (in_rows(parts=growing(2**30, 2**30)), "values beyond 32 bits"),
        (in_rows(unit_lo=growing(-(2**31), -1)), "values beyond 32 bits"),
        (in_rows(unit_lo=growing(-(2**31), 1)), "schedule: phase 1: units that the part does not have"),
        (in_rows(part=1), "steps: schedule: phase 1: a part of the message that does not exist"),
    ],
)
def test_steps_that_cannot_be_are_refused(change, said):
    """With the field; what is large is not allocated."""
    header = msgspec.convert({**RIGHT, **change}, StepsHeader)
    if not said:
        steps, ranges = read_steps(header, of_size(4, 4), lambda i, stated: None)
        assert (steps.num_steps, len(ranges)) == (sum(one.count for one in header.phases),) * 2
        return
    with pytest.raises(ValueError, match=re.escape(said)):
        read_steps(header, of_size(4, 4), lambda i, stated: pytest.fail("no step is needed"))


MOVED = {"rows": {"num_rows": 1, "dst": 1, "lo": 3, "op": 2}, "moves": [0]}
PATHS = {"rows": ROWS, "hops": packed([7, 8, 9]), "lengths": packed([1, 2])}
ALONE = {"rows": ROWS}


def as_values(header):
    """A header whose packed values are lists."""
    if isinstance(header, dict):
        return {name: as_values(one) for name, one in header.items()}
    if isinstance(header, list):
        return [as_values(one) for one in header]
    return np.cumsum(numbers(header, None)).tolist() if isinstance(header, str) else header


def plan_of(steps, rounds):
    """A plan of four ranks and chunks."""
    return CircuitPlan(opticcl.fabric("ideal:nodes=4"), Schedule.of("any", of_size(4, 4), steps), rounds)


def steps_of(*phases, stated=None):
    """Steps of phases; those without rows have no transfers, or one that states a path."""
    path = None if stated is None else (np.array([stated]), np.array([0, 1]))
    none = Transfers.of([0], [1], [0], [1], [0]) if path else Transfers.of([], [], [], [], [])
    found = none if path is None else replace(none, hops=path[0], hop_offsets=path[1])
    header = msgspec.convert({**RIGHT, "phases": list(phases)}, StepsHeader)
    return read_steps(header, of_size(4, 4), lambda i, stated: found)[0]


@pytest.mark.parametrize(
    ("phases", "stated"),
    [
        ([PHASE], None),
        ([{**PHASE, "bundles": packed([0, 1])}, MOVED], None),
        ([MOVED, {}, MOVED], None),
        ([PATHS], None),
        ([MOVED, {"states_paths": True}], 9),
        ([{"states_paths": True}, {"states_paths": True}], 9),
    ],
)
def test_phases_that_are_written(phases, stated):
    """Are those that were read."""
    found = header_of_steps(plan_of(steps_of(*phases, stated=stated), lambda i: ()))
    due = msgspec.convert({**RIGHT, "phases": phases}, StepsHeader)
    assert as_values(msgspec.to_builtins(found)) == as_values(msgspec.to_builtins(due))


def test_phases_that_are_not_written():
    """Steps that rows list say nothing in a header, and phases without transfers have no rows there."""
    assert header_of_steps(plan_of(steps_of(ALONE, ALONE), lambda i: ())) is None
    found = header_of_steps(plan_of(steps_of(MOVED, ALONE), lambda i: ()))
    assert [one.rows is None for one in found.phases] == [False, True]
    steps = steps_of(MOVED, PHASE)
    none = np.zeros((0, 1), int)
    idle = Steps(steps.space, steps.parts, [steps.phases[0], Phase(PhaseRows.of(1, none, none, none), (), 2)])
    found = header_of_steps(plan_of(idle, lambda i: ()))
    assert [one.rows is None for one in found.phases] == [False, True, True]
    assert len(read_steps(found, of_size(4, 4), lambda i, stated: None)[1]) == 3


EACH = tuple(range(i, i + 1) for i in range(5))


@pytest.mark.parametrize(
    ("classes", "due", "same"),
    [
        ((range(2), range(2, 5)), (range(2), range(2, 5)), [True, True]),
        ((*EACH[:2], range(2, 5)), (*EACH[:2], range(2, 5)), [False, True]),
        ((range(2), *EACH[2:]), (range(2), *EACH[2:]), [True, False]),
        (None, EACH, [False, False]),
    ],
)
def test_steps_of_a_file(classes, due, same):
    """Those of a phase are one where its circuits are the same by definition."""
    plan = plan_of(steps_of(PHASE, {**PHASE, "count": 3}), ClassRounds(classes, len) if classes else lambda i: ())
    assert file_steps(plan) == due
    assert [one.same_circuits for one in header_of_steps(plan).phases] == same


def test_steps_that_a_function_lists_stand_alone():
    """Even where their circuits are the same by definition."""
    steps = Steps.listed(4, 4, 3, lambda i: Transfers.of([0], [1], [0], [1], [0]), (range(3),))
    assert file_steps(plan_of(steps, ClassRounds((range(3),), len))) == EACH[:3]


def test_the_largest_files(monkeypatch):
    """As many rows and links as may be."""
    path = {"lengths": packed([1, 2]), "hops": packed([1, 2, 3])}
    header = msgspec.convert({**RIGHT, "phases": [{**PHASE, **path}, PHASE]}, StepsHeader)
    monkeypatch.setattr(plan_phases, "MOST_PHASE_ROWS", 4)
    monkeypatch.setattr(plan_phases, "MOST_HOPS", 3)
    assert read_steps(header, of_size(4, 4), lambda i, stated: None)[0].num_steps == 4
    monkeypatch.setattr(plan_phases, "MOST_HOPS", 2)
    with pytest.raises(ValueError, match="paths of 3 links; 0 or more each, 2 together"):
        read_steps(header, of_size(4, 4), lambda i, stated: None)
