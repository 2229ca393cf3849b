"""From a target loss to a model, its degrees, batch and steps: RAMP's table 9, and what holds between its rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import ParameterError
from opticcl.training.device import device
from opticcl.training.scaling_laws import critical_batch_tokens, loss_of, parameters_for, steps_to
from opticcl.training.target import CROSS_ENTROPIES, device_parameters, train_to

# RAMP table 9: cross-entropy -> dimension, heads, layers, steps, global batch, parameters, DP level, MP level.
PRINTED = {
    2.5: (1152, 12, 36, 65.6e3, 2480, 574e6, 16, 1),
    2.4: (1536, 16, 40, 70.5e3, 3424, 1.13e9, 32, 1),
    2.2: (2304, 24, 56, 78.9e3, 4896, 3.57e9, 32, 4),
    2.0: (4096, 32, 50, 87.5e3, 7168, 10.1e9, 64, 8),
    1.8: (6144, 64, 71, 98.1e3, 10880, 32.2e9, 64, 32),
    1.7: (8192, 128, 128, 111e3, 16896, 103.1e9, 256, 128),
    1.5: (16384, 512, 132, 191e3, 14080, 425.2e9, 128, 512),
    1.3: (32768, 2048, 160, 3.7e6, 1024, 2.06e12, 32, 2048),
    1.2: (131072, 8192, 52, 68e6, 64, 10.7e12, 8, 8192),
    1.0: (262144, 65536, 90, 2.49e9, 4, 74.2e12, 1, 65536),
}


@pytest.mark.parametrize("cross_entropy", PRINTED)
def test_table_9_follows_from_the_loss_and_65536_devices(cross_entropy):
    """All but the batch at 1.5, and the steps where batches are small: there 1.9 and 2.1 times those printed."""
    hidden, heads, layers, steps, batch, parameters, data, tensor = PRINTED[cross_entropy]
    found = train_to(cross_entropy, 65536)
    assert (found.hidden, found.model.layers[0].ways, found.layers) == (hidden, heads, layers)
    assert (found.tensor, found.data) == (tensor, data)
    assert found.model.parameters == pytest.approx(parameters, rel=4e-3)
    assert found.batch == (8192 if cross_entropy == 1.5 else batch)
    assert found.job().samples == found.batch
    if cross_entropy > 1.2:
        assert found.steps_with(batch) == pytest.approx(steps, rel=0.011)


def test_the_rows_are_those_of_the_table():
    """In its order."""
    assert tuple(PRINTED) == CROSS_ENTROPIES


@examples(40)
@given(
    cross_entropy=st.floats(1, 2.5),
    max_devices=st.integers(1, 2**20),
    name=st.sampled_from(["a100", "a100:memory=80GB", "h200", "a100:memory=30GB"]),
)
def test_what_is_chosen_fits_and_is_no_larger_than_it_must(cross_entropy, max_devices, name):
    """Devices, memory and the MP message are kept to; half the tensor degree would hold too much."""
    try:
        found = train_to(cross_entropy, max_devices, device=name)
    except ParameterError as error:
        needed = int(str(error).partition("try max_devices=")[2].partition(",")[0])
        assert max_devices < needed == train_to(cross_entropy, needed, device=name).tensor
        return
    assert found.num_devices <= max_devices
    assert found.job().memory_bytes <= device(name).memory_bytes
    assert found.tensor == 1 or found.local_batch * 1024 * found.hidden * 2 <= 2**31
    limit = 1.6e9 * device(name).memory_bytes / 40e9
    assert device_parameters(found.model, found.tensor) <= limit
    # Widths are rounded: half as many devices would hold about twice as much.
    assert found.tensor == 1 or device_parameters(found.model, found.tensor) > 0.4 * limit
    assert found.batch <= found.critical_batch
    assert found.steps == pytest.approx(steps_to(found.loss, 1024 * found.batch), abs=1)


@examples(60)
@given(first=st.floats(1, 2.5), second=st.floats(1, 2.5))
def test_a_lower_loss_needs_a_larger_model_and_more_steps(first, second):
    """Where the devices suffice for the critical batch of both, and everywhere for loss and parameters."""
    low, high = train_to(min(first, second)), train_to(max(first, second))
    assert low.loss <= high.loss
    assert low.tensor >= high.tensor
    assert low.steps >= high.steps or low.batch > high.batch
    assert low.model.parameters >= 0.85 * high.model.parameters  # widths are whole multiples of the tensor degree


def test_a_loss_between_two_rows_has_a_model_between_theirs():
    """Half-way between 2.2 and 2: width and layers are geometric means, to the step of a width; the loss is the mean."""
    found = train_to(2.1)
    assert found.hidden == pytest.approx((2304 * 4096) ** 0.5, abs=64)
    assert found.layers == round((56 * 50) ** 0.5)
    assert found.loss == pytest.approx((13 / 6 + 2) / 2)


def test_fewer_devices_take_smaller_batches_and_more_steps():
    """At most as many samples a copy as an A100 takes, and the law's steps for them."""
    many, few = train_to(2.0, 512), train_to(2.0, 8)
    assert (few.tensor, few.data, few.local_batch) == (8, 1, 192)
    assert few.steps > 10 * many.steps
    assert train_to(2.0, 1000) == many


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0.9,), "target_loss=0.9 is not from 2.5 to 1"),
        ((float("nan"),), "target_loss: nan is not finite"),
        (("low",), "target_loss"),
        ((2.0, 0), "max_devices=0 is not from 1 to"),
        ((2.0, 8.5), "max_devices: 8.5 is not a whole number"),
    ],
)
def test_targets_and_numbers_that_are_none_are_refused(given, said):
    """By field and value."""
    with pytest.raises(ParameterError, match=said):
        train_to(*given)


def test_devices_that_are_too_small_are_refused():
    """Parameters that no degree divides far enough; activations of one sample that do not fit."""
    with pytest.raises(ParameterError, match="takes 4e\\+04 parameters, and no tensor degree"):
        train_to(2.0, device="a100:memory=1MB")
    with pytest.raises(ParameterError, match="for one sample; try activations=offloaded"):
        train_to(1.0, 2**22, device="a100:memory=20GB", activations="kept")


# --- the laws ---------------------------------------------------------------------------------------------------------


@given(parameters=st.floats(1e6, 1e15))
def test_loss_and_parameters_are_inverse(parameters):
    """And more of one is less of the other."""
    loss = loss_of(parameters)
    assert parameters_for(loss) == pytest.approx(parameters, rel=1e-9)
    assert loss_of(2 * parameters) < loss
    assert critical_batch_tokens(loss_of(2 * parameters)) > critical_batch_tokens(loss)


def test_at_the_critical_batch_twice_the_least_steps_are_needed():
    """Kaplan et al. 2020, equation 5.4."""
    batch = critical_batch_tokens(2.0)
    assert steps_to(2.0, batch) == pytest.approx(2 * steps_to(2.0, 1e30))


@pytest.mark.parametrize("call", [lambda: loss_of(0), lambda: parameters_for(-1), lambda: steps_to(2, 0)])
def test_laws_refuse_what_they_do_not_cover(call):
    """Nothing, or less."""
    with pytest.raises(ParameterError, match="is not above 0"):
        call()
