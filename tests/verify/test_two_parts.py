"""A reduce is judged as sums, by the symmetries of these, and as copies of the sums to the root."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.collective import Request, collective
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.collective import Holders
from opticcl.ir.symmetry import Digits, Symmetry
from opticcl.schedule import generate
from opticcl.verify import data
from opticcl.verify.data import check_data
from opticcl.verify.two_parts import two_parts

ROOT = 5
HOW = "of the sums; every copy of these followed"


@pytest.fixture(autouse=True)
def symmetry_at_every_size(monkeypatch):
    """Also of few chunks."""
    monkeypatch.setattr(data, "SYMMETRY_FROM", 0)


def made(collective="reduce", system="ramp:groups=3,racks=3,wavelengths=6"):
    """A schedule of RAMP."""
    return generate("ramp", Request(collective, ROOT), fabric(system))


def with_rows(schedule, at, change):
    """The schedule with another step."""
    return replace(schedule, step=lambda i: change(schedule.step(i)) if i == at else schedule.step(i))


@pytest.mark.parametrize("system", ["ramp:groups=3,racks=3,wavelengths=6", "ramp:groups=4,racks=2,wavelengths=8"])
def test_a_reduce_is_proven_by_the_symmetries_of_its_sums(system):
    """Every rank has one chunk when the sums end; the root collects all."""
    schedule = made(system=system)
    sums, copies = two_parts(schedule)
    n = schedule.collective.num_ranks
    assert sums.num_steps + copies.num_steps == schedule.num_steps
    assert sorted(sums.collective.after.owners.tolist()) == list(range(n))
    assert sums.collective.after == copies.collective.before
    report = check_data(schedule)
    assert (report.violations, report.notes, report.exhaustive) == ((), (), True)
    assert report.how == f"symmetry of order {n}, checked, {HOW}"
    assert report.chunks == schedule.collective.num_chunks
    assert report.transfers == check_data(schedule, every_chunk=True).transfers


@pytest.mark.parametrize("part", ["sums", "copies"])
@pytest.mark.parametrize("kind", ["dropped", "doubled", "from another", "to another", "operation", "other chunk"])
def test_a_wrong_part_is_refused_as_by_following_every_chunk(part, kind):
    """The same violations; a partial sum is not accepted as a sum, and nothing is added to one."""
    schedule = made()

    def change(rows):
        last = len(rows) - 1
        if kind == "dropped":
            return rows.take(slice(0, last))
        if kind == "doubled":
            return rows.take(np.array([*range(last + 1), last]))
        column, value = {
            "from another": ("src", (rows.src[last] + 7) % 54), "to another": ("dst", (rows.dst[last] + 7) % 54),
            "operation": ("op", Op.COPY if part == "sums" else Op.REDUCE),
            "other chunk": ("chunk_lo", (rows.chunk_lo[last] + 1) % 18),
        }[kind]  # fmt: skip
        values = getattr(rows, column).copy()
        values[last] = value
        return replace(rows, **{column: values})

    wrong = with_rows(schedule, 0 if part == "sums" else schedule.num_steps - 1, change)
    found = check_data(wrong)
    assert HOW not in found.how
    assert found.violations == check_data(wrong, every_chunk=True).violations
    assert bool(found.violations) != (
        (part, kind) == ("sums", "to another")
    )  # this contribution is added on another way


def test_a_false_claim_of_the_sums_is_not_used():
    """The plan is right: accepted, with a note on the claim."""
    rotation = Digits((54,), 0, 1)
    report = check_data(replace(made(), symmetries=(Symmetry(rotation, rotation),)))
    assert report.violations == ()
    assert report.how == "every chunk followed"
    assert "claim refused" in report.notes[0]


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "gather", "broadcast"])
def test_others_have_no_such_parts(collective):
    """They do not sum to a root."""
    assert two_parts(made(collective)) is None


def test_sums_that_are_wrong_in_the_same_way_everywhere_are_refused():
    """The claims hold for them, and the copies are right."""
    schedule = made()
    for at in range(two_parts(schedule)[0].num_steps):
        without = with_rows(schedule, at, lambda rows: rows.take(slice(0, 0)))
        assert {violation.rule for violation in check_data(without).violations} >= {"contribution_missing"}


def test_how_a_reduce_is_judged_is_as_asked(monkeypatch):
    """All chunks, sets of contributors, or no symmetry for few chunks; a claim that is no symmetry is said."""
    schedule = made()
    assert check_data(schedule, every_chunk=True).how == "every chunk followed"
    assert check_data(schedule, exact=True).how == "every chunk followed, exact"
    rotation, one = Digits((54,), 0, 1), Digits((54,), 0, 0)
    both = check_data(replace(schedule, symmetries=(*schedule.symmetries, Symmetry(rotation, one))))
    assert HOW not in both.how
    assert len(both.notes) > len(check_data(schedule).notes)
    monkeypatch.setattr(data, "SYMMETRY_FROM", 1 << 16)
    assert check_data(schedule).how == "every chunk followed"


def test_claims_are_not_used_where_every_chunk_is_asked_for():
    """Nor for one chunk."""
    schedule = made("all_reduce")
    assert "symmetry of order" in check_data(schedule).how
    assert check_data(schedule, every_chunk=True).how == "every chunk followed"
    src, dst = np.divmod(np.arange(16), 4)
    rows = Transfers.of(src, dst, 0, 1, Op.REDUCE)
    claim = Symmetry(Digits((4,), 0, 1), Digits((1,), 0, 0))
    one = Schedule("hand", Request("all_reduce").on(4, 1), 1, lambda i: rows, symmetries=(claim,))
    assert (check_data(one).how, check_data(one).violations) == ("every chunk followed", ())


def by_hand(copies, root=0):
    """A reduce of four chunks among four ranks: each is summed at its own rank, then copied as the rows say, step by step."""
    src, dst = np.divmod(np.arange(16), 4)
    sums = Transfers.of(src[src != dst], dst[src != dst], dst[src != dst], 1, Op.REDUCE)
    rows = [sums, *(Transfers.of(*np.array(step).T, 1, Op.COPY) for step in copies)]

    def step(i):
        assert i >= 0
        return rows[i]

    return Schedule("hand", collective("reduce", 4, 4, root=root), len(rows), step)


IN_TURN = [[(3, 2, 3)], [(2, 0, 2), (2, 0, 3)], [(1, 0, 1)]]
"""Rank 2 passes on the chunk of rank 3; four chunks are carried."""


def test_parts_of_a_reduce_by_hand():
    """Sums are at the ranks that send them first; the second part adds nothing."""
    whole = by_hand(IN_TURN)
    sums, copies = two_parts(whole)
    assert (sums.num_steps, copies.num_steps) == (1, 3)
    assert sums.collective.after == copies.collective.before == Holders("owner", owners=np.arange(4, dtype=np.int32))
    assert (sums.collective.reduces, copies.collective.reduces) == (True, False)
    assert (sums.collective.before, copies.collective.after) == (whole.collective.before, whole.collective.after)
    assert [copies.step(i) for i in range(3)] == [whole.step(i + 1) for i in range(3)]
    for part in (sums, copies):
        assert check_data(part).violations == ()


def test_schedules_of_one_part_have_no_two():
    """Sums alone, copies alone, or steps without rows at the end."""
    assert two_parts(by_hand([])) is None
    whole, asked = by_hand(IN_TURN), []
    assert two_parts(replace(whole, num_steps=3, step=lambda i: asked.append(i) or whole.step(i + 1))) is None
    assert asked == [2, 1, 0]
    nothing = whole.step(0).take(slice(0, 0))
    assert two_parts(replace(whole, num_steps=5, step=lambda i: whole.step(i) if i < 4 else nothing)) is None


def test_collectives_that_end_elsewhere_have_no_two_parts():
    """Holders that only a function knows, contributions of some ranks, nothing that is added."""
    whole = by_hand(IN_TURN)
    c = whole.collective
    owners = Holders("owner", owners=np.arange(4, dtype=np.int32))
    for changes in (
        {"after": lambda rank, chunk: rank == 0},
        {"before": lambda rank, chunk: rank >= 0},
        {"after": owners},
        {"before": owners},
        {"reduces": False},
    ):
        assert two_parts(replace(whole, collective=replace(c, **changes))) is None


@pytest.mark.parametrize("row", [(-1, 0, 1), (1, -1, 1), (4, 0, 1), (1, 4, 1), (1, 0, -1), (1, 0, 4)])
@pytest.mark.parametrize("at", [0, 2])
def test_copies_of_what_does_not_exist_are_no_part(row, at):
    """Ranks and chunks."""
    wrong = [[row] if i == at else step for i, step in enumerate(IN_TURN)]
    assert two_parts(by_hand(wrong)) is None


def test_as_many_copies_as_can_be_kept(monkeypatch):
    """Chunks that are carried, of which more are refused; steps, of which those before belong to the first part."""
    whole = by_hand(IN_TURN)
    monkeypatch.setattr("opticcl.verify.two_parts.MOST_COPIES", 4)
    assert two_parts(whole) is not None
    monkeypatch.setattr("opticcl.verify.two_parts.MOST_STEPS", 2)
    first, second = two_parts(whole)
    assert (first.num_steps, second.num_steps) == (2, 2)
    assert first.collective.after.owners.tolist() == [0, 1, 2, 2]
    assert check_data(first).violations == check_data(second).violations == ()
    monkeypatch.undo()
    monkeypatch.setattr("opticcl.verify.two_parts.MOST_COPIES", 3)
    assert two_parts(whole) is None
