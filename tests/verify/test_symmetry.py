"""Claimed symmetries: true ones prove all chunks, false ones are dropped, and wrong plans are refused either way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.profiles import examples

import opticcl
from opticcl.circuits import lower
from opticcl.collective import COLLECTIVES, collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import CircuitPlan, Collective, Op, Schedule, Transfers
from opticcl.ir.collective import Holders, HolderTable
from opticcl.ir.symmetry import Bundles, Digits, Run, RunSteps, Symmetry, Table, Through, Xor, power
from opticcl.kernels import always_compiled, never_compiled
from opticcl.schedule import generate
from opticcl.verify import data as data_module
from opticcl.verify import exact as exact_module
from opticcl.verify import symmetry as symmetry_module
from opticcl.verify import verify
from opticcl.verify.data import check_data
from opticcl.verify.exact import check_sets
from opticcl.verify.found import worth_searching
from opticcl.verify.symmetry import CheckedClaims, claims_of, orbits
from opticcl.verify.two_parts import two_parts

CLAIMING = [
    ("ideal:nodes=12", "ring"), ("ideal:nodes=13", "ring"), ("ideal:nodes=12", "torus2d:shape=3x4"),
    ("ideal:nodes=10", "mesh"),
    ("ideal:nodes=11", "bruck"), ("ideal:nodes=10", "bruck:radix=3"), ("ideal:nodes=16", "halving_doubling"),
    ("ideal:nodes=16", "recursive_doubling"), ("ideal:nodes=12", "lumorph:factors=2x3x2"),
    ("ideal:nodes=24", "by_dimension:shape=4x3x2"),
    ("ideal:nodes=9", "send_recv"), ("sipac:radix=3,levels=3", "sipco"), ("sipac:radices=4x2x3", "sipco:k=2"),
    ("ramp:groups=4,racks=3,wavelengths=8", "ramp"), ("ramp:groups=3,racks=2,wavelengths=6", "ramp"),
    ("ramp:groups=6,racks=4,wavelengths=12", "ramp:variant=modular"),
    ("ideal:nodes=8", "two_sided_ring"), ("ideal:nodes=9", "two_sided_ring"), ("torus:shape=3x4", "torus_all_ports"),
    ("terarack:nodes=12", "circulant_rings:radices=4x3"), ("terarack:nodes=8", "circulant_rings:radices=2x4,stands=no"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def symmetry_at_every_size(monkeypatch):
    """Also where following all chunks is quicker."""
    monkeypatch.setattr(data_module, "SYMMETRY_FROM", 0)


def schedules():
    """Every claiming algorithm with every collective that it does."""
    for specification, algorithm in CLAIMING:
        for name in COLLECTIVES:
            try:
                yield generate(algorithm, name, fabric(specification))
            except UnsupportedError:
                continue


@pytest.mark.parametrize(
    "made", list(schedules()), ids=lambda s: f"{s.name}-{s.collective.name}-{s.collective.num_ranks}"
)
def test_every_claim_holds(made):
    """No claim of ours is dropped, and the verdict is that of all chunks followed."""
    proven, followed = check_data(made), check_data(made, every_chunk=True)
    assert not proven.violations
    assert not followed.violations
    assert not any("claim refused" in note for note in proven.notes)
    if made.symmetries and made.collective.num_chunks > 1:
        assert proven.how.startswith("symmetry of order")


@pytest.mark.parametrize(
    "made", list(schedules()), ids=lambda s: f"{s.name}-{s.collective.name}-{s.collective.num_ranks}"
)
def test_claims_hold_by_sorting_too(made):
    """The oracle of the polynomials: every step expanded to single chunks, sorted, and compared with its image; of a reduce,
    those that add.
    """
    made = (two_parts(made) or (made,))[0]
    c = made.collective
    for claim in made.symmetries:
        ranks, chunks = claim.ranks.images(c.num_ranks), claim.chunks.images(c.num_chunks)
        for i in range(made.num_steps):
            rows = expanded(made.step(i))
            image = rows.copy()
            image[:, 0], image[:, 1], image[:, 4] = ranks[rows[:, 0]], ranks[rows[:, 1]], chunks[rows[:, 4]]
            assert np.array_equal(np.sort(keys(rows)), np.sort(keys(image)))


def expanded(step):
    """One row a chunk: sender, receiver, operation, parts, chunk."""
    step, _ = step.ranges()
    n = step.chunk_n
    row = np.repeat(np.arange(len(step)), n)
    chunk = np.repeat(step.chunk_lo, n) + np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    parts = np.ones(len(step), int) if step.parts is None else step.parts
    return np.stack([step.src[row], step.dst[row], step.op[row], parts[row], chunk], axis=1).astype(np.int64)


def keys(rows):
    """One number a row."""
    return np.ravel_multi_index(tuple(rows.T), (1 << 10, 1 << 10, 4, 1 << 12, 1 << 14))


MUTATIONS = ("src", "dst", "chunk_lo", "chunk_n", "chunk_step", "op", "parts", "dropped", "doubled")


@examples(200)
@given(st.data())
def test_mutants_are_judged_alike(data):
    """One row changed, dropped or doubled: by claims and with all chunks followed the answer is the same."""
    specification, algorithm = data.draw(st.sampled_from(CLAIMING))
    name = data.draw(st.sampled_from(["all_reduce", "reduce_scatter", "all_gather", "all_to_all"]))
    try:
        made = generate(algorithm, name, fabric(specification))
    except UnsupportedError:
        assume(False)
    wrong = mutant(data, made)
    assert bool(check_data(wrong).violations) == bool(check_data(wrong, every_chunk=True).violations)
    rules = {violation.rule for violation in check_data(wrong, every_chunk=True).violations}
    if rules <= {"contribution_missing", "contribution_doubled"}:  # sets are compared where every step is right
        assert bool(check_sets(wrong, np.arange(wrong.collective.num_chunks))) == bool(rules)


def mutant(data, made):
    """The schedule with one row of one step changed."""
    assume(made.num_steps)
    at, kind = data.draw(st.integers(0, made.num_steps - 1)), data.draw(st.sampled_from(MUTATIONS))
    step = made.step(at)
    row = data.draw(st.integers(0, len(step) - 1))
    assume(kind not in ("parts", "chunk_step") or getattr(step, kind) is not None)
    if kind in ("dropped", "doubled"):
        rows = np.arange(len(step))
        changed = step.take(np.delete(rows, row) if kind == "dropped" else np.append(rows, row))
    else:
        column = getattr(step, kind).copy()
        column[row] = column[row] + data.draw(st.sampled_from([1, 2]))
        changed = replace(step, **{kind: column})
    return replace(made, step=lambda i: changed if i == at else made.step(i), classes=())


@pytest.mark.parametrize("words", [1 << 25, 1 << 8])
@pytest.mark.parametrize(
    "made", list(schedules())[::3], ids=lambda s: f"{s.name}-{s.collective.name}-{s.collective.num_ranks}"
)
def test_sets_of_contributors_agree(made, words, monkeypatch):
    """With one block of contributors and chunks, and with many; a lost row is named."""
    monkeypatch.setattr(exact_module, "MOST_WORDS", words)
    report = check_data(made, exact=True)
    assert not report.violations
    assert report.how.endswith(", exact")
    if made.num_steps:
        last = made.num_steps - 1
        short = replace(
            made, step=lambda i: made.step(i).take(slice(1, None) if i == last else slice(None)), classes=()
        )
        assert [v.rule for v in check_sets(short, np.arange(made.collective.num_chunks))] == ["contribution_missing"]


@pytest.mark.parametrize("distances", [0, 8])
def test_claims_on_chunks_apart_are_checked(distances, monkeypatch):
    """A rotation of 12 ranks, each of which sends one of its two chunks each way; one row sends the other chunk."""
    monkeypatch.setattr(symmetry_module, "MOST_DISTANCES", distances)
    made = generate("circulant_rings:radices=4x3", "all_reduce", fabric("terarack:nodes=12"))
    number = next(i for i in range(made.num_steps) if made.step(i).chunk_step is not None)
    for row in (None, 0, 23):
        step = made.step(number)
        lo = step.chunk_lo.copy()
        if row is not None:
            lo[row] ^= 1
        checked = CheckedClaims(claims_of(made)[0], made.collective)
        checked.check(number, replace(step, chunk_lo=lo))
        assert checked.refuted == ({} if row is None else {1: number})


def test_sets_find_what_labels_would_have_to_sum_up():
    """A contribution that is added twice while another is missing: the count is right, the set is not."""
    steps = [Transfers.of([1], [0], [0], 1, Op.REDUCE), Transfers.of([1], [0], [0], 1, Op.REDUCE)]
    made = Schedule("by hand", collective("reduce", 3, 1), 2, lambda i: steps[i])
    assert [v.rule for v in check_sets(made, np.arange(1))] == ["contribution_doubled"]


@pytest.mark.parametrize(
    "made", list(schedules()), ids=lambda s: f"{s.name}-{s.collective.name}-{s.collective.num_ranks}"
)
def test_symmetries_that_nobody_claims_are_found(made):
    """Those of rings, meshes and hypercubes; whatever is found holds, and the verdict is that of all chunks."""
    silent = replace(made, symmetries=())
    report = check_data(silent)
    assert not report.violations
    assert not report.notes
    if made.name in ("ring", "bruck", "mesh") and worth_searching(silent) and made.collective.num_chunks > 1:
        assert report.how.endswith("found and checked"), report.how


def test_nothing_is_found_where_one_row_is_wrong():
    """The rotation is refuted in the step with the wrong row, and every chunk is followed."""
    made = generate("bruck", "all_gather", fabric("ideal:nodes=64"))
    right = made.step(4)
    chunk_lo = right.chunk_lo.copy()  # steps are cached for all plans
    chunk_lo[7] = (chunk_lo[7] + 1) % 32
    wrong = replace(right, chunk_lo=chunk_lo)
    silent = replace(made, symmetries=(), step=lambda i: wrong if i == 4 else made.step(i))
    report = check_data(silent)
    assert report.how == "every chunk followed"
    assert report.violations


def test_a_false_claim_on_a_right_plan_is_dropped_with_a_note():
    """The plan is judged without it."""
    made = generate("ring", "all_gather", fabric("ideal:nodes=6"))
    swapped = Symmetry(Table(np.array([1, 0, 2, 3, 4, 5])), Table(np.array([1, 0, 2, 3, 4, 5])))
    report = check_data(replace(made, symmetries=(swapped,)))
    assert not report.violations
    assert report.how == "every chunk followed"
    assert any("is not invariant under symmetry 1" in note or "does not commute" in note for note in report.notes)
    both = check_data(replace(made, symmetries=(swapped, *made.symmetries)))
    assert both.how == "symmetry of order 6, checked"
    holders = Symmetry(Digits((6,), 0, 1), Digits((6,), 0, 2))
    assert any("does not map holders" in note for note in check_data(replace(made, symmetries=(holders,))).notes)


def test_a_true_claim_on_a_wrong_plan_does_not_help_it():
    """A ring that stops one step early is as symmetric as a whole one."""
    made = generate("ring", "all_reduce", fabric("ideal:nodes=8"))
    short = RunSteps((replace(made.step.runs[0], count=6), *made.step.runs[1:]), 8)
    report = check_data(replace(made, step=short, num_steps=short.num_steps, classes=short.classes))
    assert report.how == "symmetry of order 8, checked"
    assert {violation.rule for violation in report.violations} == {"contribution_missing"}


def test_a_contribution_counted_one_more_than_two_to_the_64_is_refused():
    """Doubling a sum 64 times brings the labels back to what they were; the count does not come back."""
    grow = [Transfers.of([0], [1], [0], 1, Op.COPY), *[Transfers.of([1], [1], [0], 1, Op.REDUCE)] * 64]
    steps = [*grow, Transfers.of([1], [0], [0], 1, Op.REDUCE)]
    made = Schedule("by hand", collective("reduce", 2, 1), len(steps), lambda i: steps[i])
    report = check_data(made)
    assert "contribution_doubled" in {violation.rule for violation in report.violations}


def test_one_wrong_row_of_4096_ranks_is_found():
    """An all-gather in which one rank gets one block from nowhere: the claim is dropped, and every chunk is followed."""
    made = generate("bruck", "all_gather", fabric("ideal:nodes=4096"))

    def step(i):
        t = made.step(i)
        if i != 5:
            return t
        lo = t.chunk_lo.copy()
        lo[777] = (lo[777] + 1) % (4096 - int(t.chunk_n[777]))
        return replace(t, chunk_lo=lo)

    report = check_data(replace(made, step=step))
    assert report.violations
    assert any("claim refused: step 5" in note for note in report.notes)


def test_light_in_the_first_step_of_each_run_only_is_refused():
    """A plan whose other steps have no circuits."""
    plan = lower(fabric("terarack:nodes=16"), generate("ring", "all_reduce", fabric("terarack:nodes=16")))
    dark = CircuitPlan(plan.fabric, plan.schedule, lambda i: plan.rounds(i) if i in (0, 15) else ())
    assert [v.rule for v in verify(dark).violations] == ["steps_unequal", "steps_unequal"]
    assert verify(plan).ok


def test_a_run_whose_shift_tears_a_range_is_refused():
    """The base sends chunks 1 and 2 together, of which the shift makes 2 and 0."""
    base = Transfers.of([0], [1], [1], 2, Op.COPY)
    step = RunSteps((Run(lambda: base, 2, Digits((3,), 0, 1)),), 3)
    made = Schedule("by hand", collective("broadcast", 2, 3), 2, step, step.classes)
    assert [v.rule for v in check_data(made).violations] == ["run_cuts_ranges"]


def test_a_run_that_shifts_chunks_apart_is_refused():
    """The base sends chunks 0 and 2; a shift does not say which chunks at that distance come next."""
    base = Transfers.of([0], [1], [0], 2, Op.COPY, chunk_step=2)
    for run, rules in ((Run(lambda: base, 2, Digits((5,), 0, 1)), ["run_cuts_ranges"]), (Run(lambda: base, 2), [])):
        step = RunSteps((run,), 5)
        made = Schedule("by hand", collective("broadcast", 2, 5), 2, step, step.classes)
        assert [v.rule for v in check_data(made).violations if v.rule != "contribution_missing"] == rules


def test_a_sample_is_no_verdict():
    """Neither good nor bad, unless it finds something wrong."""
    plan = opticcl.compile("ideal:nodes=16", "all_reduce", "1 MB", algorithm="ring")
    sample = plan.verify(num_chunks=3)
    assert not sample.ok
    assert sample.record()["ok"] is None
    assert str(sample).startswith("not judged: ")
    assert plan.verify().ok
    assert plan.verify().record()["ok"] is True


def test_too_many_chunks_without_a_symmetry_are_not_judged(monkeypatch):
    """The line names the number and the option."""
    monkeypatch.setattr(data_module, "MOST_CHUNK_ROWS", 100)
    monkeypatch.setattr(data_module, "LARGE_BLOCK", 16)
    made = generate("tree", "gather", fabric("ideal:nodes=64"))
    report = check_data(made)
    (violation,) = report.violations
    assert (violation.rule, violation.step, violation.round, violation.count) == ("not_judged", -1, -1, 1)
    assert "--all-chunks follows them" in violation.where
    assert report == data_module.DataReport((violation,), 0, 0, False, "", report.notes)
    assert not check_data(made, every_chunk=True).violations
    monkeypatch.setattr(data_module, "MOST_CHUNK_ROWS", data_module._chunk_rows(made))
    assert not check_data(made).violations


def test_blocks_of_chunks_give_the_same_answer(monkeypatch):
    """However few chunks are followed at once."""
    made = generate("wrht", "all_gather", fabric("terarack:nodes=15,wavelengths=2"))
    whole = check_data(made)
    for name in ("BLOCK", "LARGE_BLOCK"):
        monkeypatch.setattr(data_module, name, 40)
    assert check_data(made) == whole


@pytest.mark.parametrize(
    "claim",
    [
        Digits((3, 3), 0, 1),
        Digits((8,), 1, 1),
        Xor(9),
        Table(np.zeros(8, int)),
        Table(np.arange(7)),
        Through(np.ones(8, int), Xor(1)),
        Bundles(Xor(1), ((4, 1),)),
        Bundles(Xor(1), ((1, 3), (1, 5))),
    ],
)
def test_what_is_no_permutation_is_refused(claim):
    """Of wrong length, not one to one, or with images that are no elements."""
    with pytest.raises(ParameterError, match="does not permute 8 elements"):
        claim.images(8)


@given(st.data())
def test_permutations_are_permutations(data):
    """Also through labels, and applied many times."""
    radices = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    count = int(np.prod(radices))
    inner = Digits(radices, data.draw(st.integers(0, len(radices) - 1)), data.draw(st.integers(-7, 7)))
    label = np.random.default_rng(count).permutation(count)
    for permutation in (inner, Through(label, inner)):
        images = permutation.images(count)
        assert np.array_equal(np.sort(images), np.arange(count))
        times = data.draw(st.integers(0, 9))
        repeated = np.arange(count)
        for _ in range(times):
            repeated = images[repeated]
        assert np.array_equal(power(images, times), repeated)


def test_runs_are_what_their_steps_are():
    """The steps of a ring, one by one, and those that its runs define."""
    made = generate("ring", "all_to_all", fabric("ideal:nodes=7"))
    for i in range(made.num_steps):
        t = made.step(i)
        assert np.array_equal(t.chunk_lo, (np.arange(7) - i - 1) % 7)
        assert (t.parts == i + 1).all()


def test_orbits_of_a_torus_and_of_sipac():
    """One orbit, and one a level."""
    for made, count in (
        (generate("torus2d:shape=3x4", "all_reduce", fabric("ideal:nodes=12")), 1),
        (generate("sipco", "all_to_all", fabric("sipac:radix=3,levels=2")), 2),
    ):
        claims, notes = claims_of(made)
        assert not notes
        assert len(orbits(claims, made.collective.num_chunks)[0]) == count
        checked = CheckedClaims(claims, made.collective)
        for i in range(made.num_steps):
            checked.check(i, made.step(i))
        assert not checked.refuted


@pytest.mark.deep
def test_all_chunks_of_65536_ranks_are_proven():
    """RAMP at its full scale, a ring, and rings of two strides that carry 134 million chunks apart in a step."""
    rings = "circulant_rings:radices=64x1024,stands=no"
    for name, algorithm in (("ramp", "ramp"), ("ideal", "ring"), ("sipac", "sipco"), ("terarack", rings)):
        report = check_data(generate(algorithm, "all_reduce", fabric_at_scale(name, 65_536)))
        assert not report.violations
        assert report.how.startswith("symmetry of order")


def two_ranks(after, *claims, before=None, chunks=2, step=None):
    """Chunk 0 is added at rank 0 and chunk 1 at rank 1, in one step."""
    rows = Transfers.of([1, 0], [0, 1], [0, 1], 1, Op.REDUCE)
    sums = Collective("sum", 2, chunks, True, before or Holders("all"), after)
    steps = RunSteps((Run(lambda: rows),), chunks) if step is None else step
    return Schedule("by hand", sums, steps.num_steps, steps, symmetries=claims)


SWAPPED = Symmetry(Xor(1), Xor(1))


@pytest.mark.parametrize(
    "after",
    [
        Holders("root"),
        Holders("owner", 0, np.zeros(2, int)),
        HolderTable(np.array([[True, False], [True, False]])),
        lambda rank, chunk: np.broadcast_to(rank == 0, np.broadcast(rank, chunk).shape),
    ],
    ids=["root", "owners", "table", "function"],
)
def test_a_claim_that_moves_the_holders_hides_nothing(after):
    """Rank 0 must have both sums, and the image of chunk 0, which is right, is chunk 1 at rank 1, which was not asked for."""
    report = check_data(two_ranks(after, SWAPPED))
    assert [v.rule for v in report.violations] == ["contribution_missing"]
    assert report.notes[0] == "claim refused: symmetry 1 does not map holders of chunks onto holders"
    before = check_data(two_ranks(Holders("owner", 0, np.arange(2)), SWAPPED, before=after))
    assert before.notes[0] == "claim refused: symmetry 1 does not map holders of chunks onto holders"


@pytest.mark.parametrize("after", [Holders("owner", 0, np.arange(2)), HolderTable(np.eye(2, dtype=bool))])
def test_a_claim_that_keeps_the_holders_is_used(after):
    """One chunk proves both; the rank that holds one is exchanged with the rank that holds the other."""
    report = check_data(two_ranks(after, SWAPPED))
    assert (report.violations, report.how) == ((), "symmetry of order 2, checked")
    fixed = check_data(two_ranks(Holders("root"), Symmetry(Table([0, 1]), Xor(1))))
    assert fixed.notes[0].startswith("claim refused: step 0")


def test_a_claim_that_does_not_commute_with_a_shift_hides_nothing():
    """Chunks 0 and 1 are alike in the first step; in the second one chunk 1 is added once more, and chunk 0 is not."""
    rows = Transfers.of([0], [1], [0], 1, Op.REDUCE), Transfers.of([0], [1], [1], 1, Op.REDUCE)
    both = Transfers(*(np.concatenate([getattr(t, n) for t in rows]) for n in Transfers.__slots__[:5]))
    step = RunSteps((Run(lambda: both, 2, Digits((3,), 0, 1)),), 3)
    claim = Symmetry(Table([0, 1]), Table([1, 0, 2]))
    report = check_data(two_ranks(Holders("root", 1), claim, chunks=3, step=step))
    assert [v.rule for v in report.violations] == ["contribution_doubled"]
    assert report.notes[0] == "claim refused: symmetry 1 does not commute with the shift of a run"


def test_steps_beyond_those_of_the_schedule_are_not_played():
    """Runs define six steps, and the schedule says that it has five."""
    made = generate("ring", "all_reduce", fabric("ideal:nodes=4"))
    report = check_data(replace(made, num_steps=5, classes=()))
    assert [v.rule for v in report.violations] == ["contribution_missing"]
    assert report.transfers == 20


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (2, 5), (5, 5), (0, 9), (9, 10), (10, 10), (3, 8)])
def test_sizes_are_compared_too(monkeypatch, one, other):
    """Exact ones by a table of as many random numbers, larger ones by their order among those of the step."""
    monkeypatch.setattr(symmetry_module, "MOST_PARTS", 8)
    made = two_ranks(Holders("owner", 0, np.arange(2)), SWAPPED)
    claims, _ = claims_of(made)
    checked = CheckedClaims(claims, made.collective)
    checked.check(0, Transfers.of([], [], [], [], [], []))
    for step in (1, 2):
        checked.check(step, Transfers.of([1, 0], [0, 1], [0, 1], 1, Op.MOVE, [one, other]))
        assert len(checked._parts[0]) == (max(one, other) if max(one, other) < 8 else int(one != other)) + 1
    checked.check(3, Transfers.of([1, 0], [0, 1], [0, 1], 1, Op.MOVE, 1))
    assert checked.refuted == ({} if one == other else {1: 1})


@pytest.mark.parametrize("distances", [0, 1, 2, 8])
@pytest.mark.parametrize(
    ("images", "true"), [([1, 0, 3, 2, 4], True), ([3, 2, 1, 0, 4], True), ([2, 1, 0, 3, 4], False)]
)
def test_chunks_apart_under_claims(monkeypatch, distances, images, true):
    """Two ranks send each other two chunks of four, two apart; rows of other distances beside them, or none."""
    monkeypatch.setattr(symmetry_module, "MOST_DISTANCES", distances)
    sums = Collective("sum", 2, 5, True, Holders("all"), Holders("all"))
    rows = Transfers.of([0, 1], [1, 0], [0, 1], 2, Op.REDUCE, chunk_step=2)
    single = Transfers.of([0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 4, 4], [2, 2, 1, 1], Op.REDUCE, chunk_step=[2, 2, 3, 1])
    made = Schedule("by hand", sums, 1, lambda i: rows, symmetries=(Symmetry(Xor(1), Table(images)),))
    claims, _ = claims_of(made)
    for step in (rows, single):
        for limited in (always_compiled(), never_compiled()):
            with limited:
                checked = CheckedClaims(claims, sums)
                checked.check(3, step)
            assert checked.refuted == ({} if true else {1: 3})


def test_claims_are_used_from_a_size_on(monkeypatch):
    """Not below it, not where all chunks are asked for, and not of one chunk; none are searched where that takes longer."""
    right = two_ranks(Holders("owner", 0, np.arange(2)), SWAPPED)
    for limit, how in ((4, "symmetry of order 2, checked"), (5, "every chunk followed")):
        monkeypatch.setattr(data_module, "SYMMETRY_FROM", limit)
        assert check_data(right).how == how
    monkeypatch.setattr(data_module, "SYMMETRY_FROM", 0)
    assert check_data(right, every_chunk=True).how == "every chunk followed"
    assert check_data(replace(right, symmetries=())).how == "every chunk followed"
    rows = Transfers.of([1, 0], [0, 1], 0, 1, Op.REDUCE)
    claim = Symmetry(Xor(1), Table([0]))
    assert check_data(two_ranks(Holders("all"), claim, chunks=1, step=RunSteps((Run(lambda: rows),), 1))).how == (
        "every chunk followed"
    )


def test_chunks_that_are_carried_are_counted(monkeypatch):
    """By the first step of each class; not where they cannot be too many."""
    made = generate("ring", "all_reduce", fabric("ideal:nodes=4"))
    every = sum(int(made.step(i).chunk_n.sum()) for i in range(made.num_steps))
    for limit, due in ((15, every), (16, 0)):
        monkeypatch.setattr(data_module, "LARGE_BLOCK", limit)
        assert data_module._chunk_rows(made) == due
    monkeypatch.setattr(data_module, "LARGE_BLOCK", 0)
    assert data_module._chunk_rows(two_ranks(Holders("all"))) == 2
    assert data_module._chunk_rows(two_ranks(Holders("all"), chunks=1)) == 0


def test_sets_are_compared_where_labels_find_nothing(monkeypatch):
    """Once, of the chunks that were followed; not where labels have found an error or a claim is refuted, which begins anew."""
    compared = []
    monkeypatch.setattr(data_module, "check_sets", lambda schedule, chunks: compared.append(chunks.tolist()) or [])
    right = two_ranks(Holders("owner", 0, np.arange(2)), SWAPPED)
    assert check_data(right).how == "symmetry of order 2, checked"
    assert not compared
    assert check_data(right, exact=True).how == "symmetry of order 2, checked, exact"
    assert compared == [[0]]
    assert check_data(two_ranks(Holders("root")), exact=True).violations
    assert compared == [[0]]
    direct = Transfers.of([0, 1, 0], [2, 2, 1], [0, 0, 1], 1, Op.REDUCE), Transfers.of([1], [2], [1], 1, Op.REDUCE)
    sums = Collective("sum", 3, 2, True, Holders("all"), Holders("root", 2))
    claim = Symmetry(Table([0, 1, 2]), Xor(1))
    report = check_data(Schedule("by hand", sums, 2, direct.__getitem__, symmetries=(claim,)), exact=True)
    assert report.notes == ("claim refused: step 0 is not invariant under symmetry 1",)
    assert report.how == "every chunk followed, exact"
    assert compared == [[0], [0, 1]]
