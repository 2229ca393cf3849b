"""Datasheets, the roofline, measured times and the profiler."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.assumptions import assumptions
from opticcl.errors import OutputError, ParameterError, UnknownNameError, UnsupportedError, WorkloadError
from opticcl.files import read_toml
from opticcl.training.device import DEVICES, PRECISIONS, Work, device, efficiency_of, roofline_s
from opticcl.training.models import model
from opticcl.training.partition import partition
from opticcl.training.profiler import profile
from opticcl.training.times import Times, check_times, read_times, write_times


@pytest.mark.parametrize("name", DEVICES)
def test_every_device_is_complete(name):
    """Memory, its rate and at least the single-precision peak, each with a source."""
    made = device(name)
    assert made.memory_bytes > 1e9
    assert made.memory_bytes_per_s > 1e11
    assert made.peak("fp32") > 1e12
    assert all(
        entry["source"] and entry["unit"] for entry in read_toml("opticcl.training", "devices.toml")[name].values()
    )
    assert list(made.peak_per_s.values()) == sorted(made.peak_per_s.values())  # fewer bits are never slower


def test_the_simulator_has_the_same_a100():
    """RAMP section 7.4: 1,555 GB/s."""
    assert device("a100").memory_bytes_per_s == assumptions("published").memory_bytes_per_s == 1.555e12


def test_core_clocks_give_the_peak():
    """Two operations a core and cycle: NVIDIA's core counts and boost clocks."""
    for name, cores, hertz in (("2080 Ti", 4352, 1.545e9), ("Titan Xp", 3840, 1.582e9), ("m40", 3072, 1.112e9)):
        assert device(name).peak("fp32") == pytest.approx(2 * cores * hertz, rel=0.01)


def test_values_can_be_changed():
    """The user's own variant, named so."""
    made = device("a100:memory=80GB,memory_rate=2.039TB/s,peak=1e14")
    assert (made.memory_bytes, made.memory_bytes_per_s, made.peak("bf16")) == (80e9, 2.039e12, 1e14)
    assert made.name.startswith("a100:memory=80GB")


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("a1000", UnknownNameError, "a100"),
        ("a100:ram=80GB", ParameterError, "ram"),
        ("a100:memory=80 Gb/s", ParameterError, "memory"),
        ("a100:peak=0", ParameterError, "peak=0 is not positive"),
    ],
)
def test_wrong_devices_are_refused(name, error, said):
    """One line with the field."""
    with pytest.raises(error, match=said):
        device(name)


@given(
    operations=st.floats(0, 1e18),
    moved=st.floats(0, 1e13),
    efficiency=st.floats(0.01, 1),
    precision=st.sampled_from(PRECISIONS),
)
def test_no_time_is_below_either_bound(operations, moved, efficiency, precision):
    """The roofline is the larger of the two, and grows with the work."""
    on, work = device("a100"), Work(operations, moved)
    time_s = roofline_s(work, on, precision, efficiency)
    computing = operations / on.peak(precision) / efficiency
    assert time_s == pytest.approx(max(computing, moved / 1.555e12), rel=1e-12)
    assert roofline_s(work * 2, on, precision, efficiency) == pytest.approx(2 * time_s)


def test_a_device_without_a_rate_says_which_it_has():
    """An M40 has no fast half precision."""
    with pytest.raises(ParameterError, match="precision=fp32"):
        roofline_s(Work(1, 1), device("m40"), "fp16", 0.5)


@pytest.mark.parametrize("given", [0.0, -1.0, 4.1, float("nan")])
def test_efficiency_has_a_range(given):
    """Above 0; a little above 1 can be, since Winograd's convolutions multiply less."""
    assert efficiency_of("fp32", 1.17) == 1.17
    with pytest.raises(ParameterError, match="efficiency"):
        efficiency_of("fp32", given)


def test_every_precision_has_a_default_with_its_reason():
    """Numbers of ours are named and explained."""
    for precision in PRECISIONS:
        assert 0 < efficiency_of(precision) <= 1
        assert read_toml("opticcl.training", "training.toml")["efficiency"][precision]["source"]


# --- measured times ---------------------------------------------------------------------------------------------------

LENET = [layer.name for layer in model("lenet").layers]


def toml(names=LENET, samples=4, forward='"1 ms"', backward="0.002"):
    """The TOML form."""
    rows = (f'[[layers]]\nlayer = "{name}"\nforward = {forward}\nbackward = {backward}\n' for name in names)
    return f"samples = {samples}\n" + "".join(rows)


def csv(names=LENET, forward="1e-3", backward="2 ms"):
    """The CSV form."""
    return "layer,forward_s,backward_s\n" + "".join(f"{name},{forward},{backward}\n" for name in names)


def put(path, text):
    """A file with that text."""
    path.write_text(text)
    return str(path)


def test_measured_times_take_the_place_of_the_roofline(tmp_path):
    """Five layers, 1 + 2 ms each for 4 samples: 12 samples take three times that; the update is extra."""
    file = put(tmp_path / "t.toml", toml())
    job = partition("lenet", 2, local_batch=12, times=file, optimiser="none")
    assert job.compute_s == pytest.approx(5 * 3e-3 * 3)
    assert "computation: measured, t.toml" in job.notes
    per_sample = partition("lenet", 2, local_batch=12, times=put(tmp_path / "t.csv", csv()), optimiser="none")
    assert per_sample.compute_s == pytest.approx(5 * 3e-3 * 12)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.toml", "", "`samples`"),
        ("t.toml", toml(samples=0), "samples: 0"),
        ("t.toml", toml() + "speed = 3", r"layers\[4\]: .*`speed`"),
        ("t.toml", toml(LENET[:-1]), "no times for 1 of 5 layers of lenet, first 'fc3'"),
        ("t.toml", toml([*LENET, "fc4"]), "no layer 'fc4'.*fc3"),
        ("t.toml", toml([*LENET, "fc3"]), "duplicate layer 'fc3'"),
        ("t.toml", toml(forward="-1"), "a negative time"),
        ("t.toml", toml(forward='"3 GB"'), r"layers\[0\]: forward"),
        ("t.toml", toml(forward="nan"), "finite"),
        ("t.toml", "samples = [", "cannot be read"),
        ("t.csv", "", "line 1"),
        ("t.csv", "layer,forward\n", "found 'layer,forward'"),
        ("t.csv", csv() + "fc4,1\n", "line 7: 2 columns"),
        ("t.csv", csv(forward="fast"), "line 2: forward"),
        ("t.csv", csv() + '"fc4', "cannot be read"),
    ],
)
def test_wrong_times_are_refused_with_the_place(tmp_path, name, text, said):
    """One printable line: the file, the field or line."""
    with pytest.raises(WorkloadError, match=said) as caught:
        partition("lenet", 2, times=put(tmp_path / name, text))
    assert str(caught.value).isprintable()


def test_times_are_written_and_read_alike(tmp_path):
    """Whole, with any name; nothing is left where it fails."""
    times = Times('a "b"\\', 3, {"x\n": 0.1, "y": 2e-9}, {"x\n": 0.25, "y": 0.0})
    write_times(times, tmp_path / "t.toml")
    read = read_times(tmp_path / "t.toml")
    assert (read.samples, read.forward_s, read.backward_s) == (3, times.forward_s, times.backward_s)
    with pytest.raises(OutputError):
        write_times(times, tmp_path / "none" / "t.toml")


def test_without_torch_the_profiler_tells_the_command(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'opticcl\[torch\]'"):
        profile(None, (3, 32, 32))


def test_the_profiler_measures_every_layer():
    """The names are those of the imported model, times are positive, and a wrong count is refused."""
    torch = pytest.importorskip("torch", reason="the extra torch is not installed: pip install 'opticcl[torch]'")
    from opticcl.training.torch_model import model_from_torch

    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    times = profile(net, (64,), batch=4, repeats=2, warm_up=1, device="cpu")
    check_times(times, model_from_torch(net, (64,)))
    assert times.samples == 4
    assert min(times.forward_s.values()) > 0
    assert min(times.backward_s.values()) > 0
    with pytest.raises(ParameterError, match="repeats=0"):
        profile(net, (64,), repeats=0)
