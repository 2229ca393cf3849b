"""Options of the engines: the limits of each, and what is refused beside them."""

import pytest

from opticcl.errors import ParameterError
from opticcl.simulate.options import ClosedFormOptions, DeviceOptions, FlowOptions, PacketOptions

WINDOWED = {"transport": "windowed"}
SHUFFLED = {"order": "shuffled"}


@pytest.mark.parametrize(
    ("options", "least", "below", "message"),
    [
        (DeviceOptions, {"max_events": 1}, {"max_events": 0}, "device: max_events=0; it must be at least 1"),
        (FlowOptions, {"max_events": 1}, {"max_events": 0}, "flow: max_events=0; it must be at least 1"),
        (FlowOptions, {"tolerance": 0.1}, {"tolerance": 0.11}, "flow: tolerance=0.11 is not between 0 and 0.1"),
        (FlowOptions, {"tolerance": 0.0}, {"tolerance": -0.01}, "flow: tolerance=-0.01 is not between 0 and 0.1"),
        (PacketOptions, {"max_events": 1}, {"max_events": 0}, "packet: max_events=0; it must be at least 1"),
        (PacketOptions, {"cell_bytes": 1}, {"cell_bytes": 0}, "cell_bytes=0 is not a whole number of 1 or more"),
        (PacketOptions, {"cell_bytes": 2}, {"cell_bytes": 2.5}, "cell_bytes=2.5 is not a whole number of 1 or more"),
        (PacketOptions, {"buffer_bytes": 4096}, {"buffer_bytes": 4095}, "at least one cell of 4096 bytes; try 32768"),
        (PacketOptions, {"buffer_bytes": 5000}, {"buffer_bytes": 5000.5}, "buffer_bytes=5000.5 must be a whole number"),
        (PacketOptions, {"window": 1, **WINDOWED}, {"window": 0, **WINDOWED}, "window=0; it must be at least 1"),
        (PacketOptions, {"seed": 0, **SHUFFLED}, {"seed": -1, **SHUFFLED}, "seed=-1; it must be at least 0"),
        (PacketOptions, {"retransmit_s": 1e-9, **WINDOWED}, {"retransmit_s": 0.0, **WINDOWED}, "retransmit_s=0 is not"),
        (PacketOptions, {"window": 5, **WINDOWED}, {"window": 5}, "window needs transport=windowed"),
        (PacketOptions, {"retransmit_s": 1, **WINDOWED}, {"retransmit_s": 1}, "retransmit_s needs transport=windowed"),
        (PacketOptions, {"seed": 5, **SHUFFLED}, {"seed": 5}, "seed needs order=shuffled; order=interleaved"),
    ],
)
def test_limits(options, least, below, message):
    """The last value that is accepted, and the first that is not."""
    for name, value in least.items():
        assert getattr(options(**least), name) == value
    with pytest.raises(ParameterError, match=message):
        options(**below)


def test_what_is_left_out():
    """As the docstrings say: 64 cells, seed 0, 20 million events, for packets 100 million; all by keyword."""
    packet = PacketOptions()
    assert (packet.window_cells, packet.random_seed, packet.cell_bytes, packet.max_events) == (64, 0, 4096, 10**8)
    assert (PacketOptions(window=7, **WINDOWED).window_cells, PacketOptions(seed=9, **SHUFFLED).random_seed) == (7, 9)
    assert DeviceOptions().max_events == FlowOptions().max_events == 20 * 10**6
    assert FlowOptions().tolerance == 0
    for options in (ClosedFormOptions, DeviceOptions, FlowOptions, PacketOptions):
        assert hash(options()) == hash(options())
        with pytest.raises(TypeError, match="positional"):
            options(1)
