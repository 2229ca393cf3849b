"""The five systems by their own algorithms at the configurations of the papers: verified, and executed on integers."""

import numpy as np
import pytest

import opticcl

MOST_WORDS = 1 << 25  # of all ranks together that are executed; a larger plan is judged alone


def few(soon, later):
    """Configurations that `make test` tries, and those of `make test-deep`."""
    return [*soon, *(pytest.param(one, marks=pytest.mark.deep) for one in later)]


RAMP = few(
    [(3, 3, 6), (5, 3, 10), (7, 7, 21), (8, 4, 16)],
    [(4, 4, 8), (5, 5, 10), (8, 8, 16), (8, 8, 32), (16, 4, 32), (32, 8, 64), (11, 11, 33), (16, 8, 32), (32, 32, 64)],
)
SIPAC = few([(2, 3), (4, 2), (8, 3)], [(2, 1), (2, 2), (3, 2), (16, 2)])
ODDL = few(["4", "2x4", "8x8", "4x2x8"], ["2", "8", "16", "32", "4x4", "16x16", "2x2x2", "4x4x4", "8x4x8"])
LIGHTPATH = few(["2x4", "3x4", "8x8"], ["2x2", "4x4", "8x12", "8x16", "16x16"])


def check(fabric, algorithm, **parameters):
    """An all-reduce, judged and, if it fits into memory, run."""
    made = opticcl.fabric(fabric, **parameters)
    plan = opticcl.compile(made, "all_reduce", "1MB", algorithm=algorithm)
    verdict = plan.verify()
    assert verdict.ok, f"{plan}: {verdict}"
    ranks, chunks = plan.schedule.collective.num_ranks, plan.schedule.collective.num_chunks
    if ranks * chunks <= MOST_WORDS:
        data = np.random.default_rng(ranks).integers(-(10**6), 10**6, (ranks, chunks), dtype=np.int32)
        total = data.sum(axis=0, dtype=np.int32)
        assert all(np.array_equal(result, total) for result in plan.execute(data)), plan
    return verdict


@pytest.mark.parametrize("shape", RAMP, ids=str)
def test_ramp(shape):
    """All configurations, up to 65,536 nodes with every one of 16 million circuits counted."""
    groups, racks, wavelengths = shape
    verdict = check("ramp", "ramp", groups=groups, racks=racks, wavelengths=wavelengths)
    if groups * racks * wavelengths == 65_536:
        assert verdict.circuits == 16_384_000


@pytest.mark.parametrize("shape", SIPAC, ids=str)
def test_sipac(shape):
    """SiPCO and the whole family up to the least volume."""
    radix, levels = shape
    for k in range(1, levels + 1):
        check("sipac", f"sipco:k={k}", radix=radix, levels=levels)


@pytest.mark.parametrize("nodes", [2, 5, 9, 16, 27, 97, 128, 139])
def test_terarack(nodes):
    """WRHT on powers, on primes and on numbers beside them."""
    check("terarack", "wrht", nodes=nodes, wavelengths=8)


@pytest.mark.deep
@pytest.mark.parametrize("wavelengths", [2, 8, 64])
def test_terarack_of_every_size(wavelengths):
    """WRHT on 2 to 139 nodes."""
    for nodes in range(2, 140):
        check("terarack", "wrht", nodes=nodes, wavelengths=wavelengths)


@pytest.mark.parametrize("shape", ODDL)
def test_oddl(shape):
    """Halving-doubling on powers of two in one to three dimensions."""
    check("oddl", "halving_doubling", shape=shape)


@pytest.mark.parametrize("shape", LIGHTPATH)
def test_lightpath(shape):
    """LUMORPH on 4 to 256 tiles, by two, four and eight."""
    for radix in (2, 4, 8):
        check("lightpath", f"lumorph:radix={radix}", shape=shape)
