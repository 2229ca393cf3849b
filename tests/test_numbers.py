"""Numbers that users write: the digits 0 to 9, without underscores, none that would be computed with as 0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.collective import Request
from opticcl.errors import OpticclError, ParameterError
from opticcl.fabrics import fabric
from opticcl.registry import convert_value
from opticcl.schedule import generate
from opticcl.units import message_size, number_of, quantity, shape, whole_of
from tests.profiles import examples

ZEROS = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐０𝟎𝟘"
"""The digit 0 of other scripts; the digits 1 to 9 follow it."""


def written_otherwise(digits):
    """Numbers with digits of other scripts, superscripts or underscores in place of some of theirs."""

    def other(text, at, zero):
        at %= len(text)
        return text[:at] + chr(ord(zero) + int(text[at])) + text[at + 1 :]

    apart = digits.map(lambda text: f"{text}_{text}")
    return st.one_of(
        st.builds(other, digits, st.integers(0, 20), st.sampled_from(ZEROS)),
        st.builds(lambda text, odd: text + odd, digits, st.sampled_from("²³¹₂①Ⅷ½")),
        apart,
    )


WHOLE = st.integers(1, 10**6).map(str)
SIGNS = st.sampled_from(["", "+", "-"])


@examples(200)
@given(text=written_otherwise(WHOLE), sign=SIGNS)
def test_other_digits_are_refused(text, sign):
    """By everything that reads a number."""
    for read in (whole_of, number_of):
        with pytest.raises(ValueError, match="is not a"):
            read(sign + text)
    for hint in (int, float):
        with pytest.raises(ParameterError, match="field: "):
            convert_value(sign + text, hint, "field")
    for call in (
        lambda: quantity(text + "GB/s", "byte/s"),
        lambda: quantity(text, "s"),
        lambda: message_size(text + "MB"),
        lambda: message_size(text),
        lambda: shape(f"2x{text}"),
        lambda: fabric(f"ideal:nodes={text}"),
        lambda: generate(f"lumorph:radix={text}", Request("all_reduce"), fabric("ideal:nodes=8")),
    ):
        with pytest.raises(OpticclError):
            call()


@examples(200)
@given(mantissa=st.integers(1, 10**6), exponent=st.integers(340, 10**5), sign=SIGNS, point=st.booleans())
def test_a_number_that_vanishes_is_refused(mantissa, exponent, sign, point):
    """It is not 0; that is."""
    text = f"{sign}{mantissa}{'.0' * point}e-{exponent}"
    with pytest.raises(ValueError, match="is too small to compute with"):
        number_of(text)
    for call in (
        lambda: quantity(text, "s"),
        lambda: quantity(f"{text}s", "s"),
        lambda: convert_value(text, float, "x"),
    ):
        with pytest.raises(ParameterError, match="is too small to compute with"):
            call()
    assert number_of(f"{sign}0e-{exponent}") == 0 == quantity(f"0e-{exponent}s", "s")


@examples(200)
@given(value=st.floats(allow_nan=False, allow_infinity=False), whole=st.integers(-(10**30), 10**30))
def test_what_python_writes_is_read(value, whole):
    """Every float and every whole number."""
    assert number_of(repr(value)) == value
    assert whole_of(str(whole)) == whole


@pytest.mark.parametrize("text", ["١", "1_0", "²", "1e-400"])
@pytest.mark.parametrize(
    "words",
    [
        ("compare", "-f", "ideal", "-s", "1MB", "-n", "{}"),
        ("compare", "-f", "ideal", "-n", "8", "-s", "{}"),
        ("compare", "-f", "ideal", "-n", "8", "-s", "1MB", "--jobs", "{}"),
        ("compile", "-f", "terarack:nodes=8,wavelengths={}"),
        ("compile", "-f", "ideal:nodes=8", "--job", "0-{}"),
        ("simulate", "-f", "ideal:nodes=8", "--assume", "endpoint={}"),
        ("execute", "-f", "ideal:nodes=8", "--seed", "{}"),
        ("run", "-f", "ideal:nodes=1", "--repeat", "{}"),
        ("sweep", "-f", "ideal", "-n", "8", "--to", "{}"),
        ("traffic", "--load", "{}"),
        ("traffic", "--seed", "{}"),
        ("train", "--model", "lenet", "-f", "ideal", "-n", "8", "--straggler", "{}=2"),
        ("train", "--model", "lenet", "-f", "ideal", "-n", "8", "--straggler", "3={}"),
        ("cost", "-n", "16", "--set", "wss.usd={}"),
        ("budget", "-f", "ramp:groups=2,racks=2,wavelengths=4", "--set", "modulator.loss={}"),
        ("faults", "-f", "oddl:shape=2x2", "--fail", "laser:{}"),
        ("jobs", "-f", "lightpath:shape=2x4", "--place", "{}"),
        ("explore", "--port", "{}"),
        ("explore", "--time-limit", "{}"),
    ],
    ids=lambda words: " ".join(words),
)
def test_every_verb_refuses_them(opticcl, words, text):
    """In one line, with code 2."""
    done = opticcl(*(word.format(text) for word in words))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("size", ['"1_0MB"', '"١MB"', "1e-400", '"1e-400"'])
def test_files_refuse_them(opticcl, tmp_path, size):
    """Lists of sizes and studies."""
    (tmp_path / "sizes.toml").write_text(f'name = "x"\n[[calls]]\ncollective = "all_reduce"\nsize = {size}\n')
    done = opticcl("compare", "-f", "ideal", "-n", "8", "-w", tmp_path / "sizes.toml")
    assert done.returncode == 2, done.stdout
    (tmp_path / "study.toml").write_text(
        f'[axes]\nfabric = ["ideal"]\nnodes = [4]\ncollective = ["all_reduce"]\nsize = [{size}]\n'
    )
    done = opticcl("study", "run", tmp_path / "study.toml", "--folder", tmp_path / "out")
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
