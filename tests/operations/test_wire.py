"""Messages as bits and datagrams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.errors import ParameterError
from opticcl.operations.oddl_control.protocol import MessageKind, ProtocolMessage
from opticcl.operations.oddl_control.wire import (
    DATAGRAM_BYTES,
    MESSAGE_BITS,
    bits_of,
    datagram,
    message_of,
    read_datagram,
)

messages = st.builds(ProtocolMessage, st.integers(0, 4095), st.sampled_from(MessageKind), st.integers(0, 2**32 - 1))


@given(messages, st.integers(0, 2**32 - 1))
def test_a_message_comes_back(message, job):
    """From its 13 bits but for the number, from its datagram whole, and only for its job."""
    bits = bits_of(message)
    assert bits < 1 << MESSAGE_BITS == 1 << 13
    assert message_of(bits, message.number) == message
    assert read_datagram(job, datagram(job, message)) == message
    assert read_datagram(job ^ 1, datagram(job, message)) is None


@given(st.one_of(st.binary(max_size=40), st.binary(min_size=DATAGRAM_BYTES, max_size=DATAGRAM_BYTES)))
def test_garbage_is_no_message(data):
    """Whatever its length."""
    assert read_datagram(1, data) is None


@given(messages, st.integers(0, DATAGRAM_BYTES * 8 - 1))
def test_a_flipped_bit_is_noticed(message, bit):
    """Anywhere in the datagram."""
    data = bytearray(datagram(7, message))
    data[bit // 8] ^= 1 << bit % 8
    assert read_datagram(7, bytes(data)) is None


def test_twelve_bits_name_4096_nodes():
    """And no more."""
    assert bits_of(ProtocolMessage(4095, MessageKind.READY)) == 8190
    with pytest.raises(ParameterError, match="12 bits cannot name node 4096"):
        bits_of(ProtocolMessage(4096, MessageKind.READY))
