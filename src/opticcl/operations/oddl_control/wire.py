"""Control messages as bits and as datagrams.

::

    datagram    "ODCU"  job   number   | bits 15..13: 0 | 12..1: address | 0: type |   CRC-32
                 4       4      4                        2                              4      bytes

The 13 bits of the paper are the last two bytes before the checksum. The job and the number of the exchange, for which the 13
bits have no place, precede them: with these the protocol tolerates loss, delay, duplication and reordering.

Source: ODDL section 4.B: 12 bits of address, 1 bit of type.
"""

from __future__ import annotations

import struct
from zlib import crc32

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.operations.oddl_control.protocol import MessageKind, ProtocolMessage

__all__ = [
    "ADDRESS_BITS",
    "DATAGRAM_BYTES",
    "MESSAGE_BITS",
    "MOST_NODES",
    "bits_of",
    "datagram",
    "message_of",
    "read_datagram",
]

ADDRESS_BITS: int = read_toml("opticcl.operations.oddl_control", "protocol.toml")["address_bits"]["value"]
MESSAGE_BITS: int = ADDRESS_BITS + read_toml("opticcl.operations.oddl_control", "protocol.toml")["type_bits"]["value"]
MOST_NODES = 1 << ADDRESS_BITS

_MAGIC = b"ODCU"
_BODY = struct.Struct("!4sIIH")
DATAGRAM_BYTES = _BODY.size + 4


def bits_of(message: ProtocolMessage) -> int:
    """A message as 13 bits.

    >>> f"{bits_of(ProtocolMessage(5, MessageKind.COMPLETION)):013b}"
    '0000000001011'

    Raises: ParameterError: a node that 12 bits cannot name.
    """
    if not 0 <= message.sender < MOST_NODES:
        raise ParameterError(
            f"control: {ADDRESS_BITS} bits cannot name node {message.sender}; a machine has nodes 0 to {MOST_NODES - 1}"
        )
    return message.sender << 1 | message.kind


def message_of(bits: int, number: int = 0) -> ProtocolMessage:
    """The message encoded by 13 bits.

    >>> message_of(0b1011)
    ProtocolMessage(sender=5, kind=<MessageKind.COMPLETION: 1>, number=0)
    """
    return ProtocolMessage(bits >> 1, MessageKind(bits & 1), number)


def datagram(job: int, message: ProtocolMessage) -> bytes:
    """A message as a UDP datagram."""
    body = _BODY.pack(_MAGIC, job, message.number, bits_of(message))
    return body + crc32(body).to_bytes(4, "big")


def read_datagram(job: int, data: bytes) -> ProtocolMessage | None:
    """The message of this job in a datagram, or None for any other content."""
    if len(data) != DATAGRAM_BYTES or crc32(data[:-4]).to_bytes(4, "big") != data[-4:]:
        return None
    magic, of_job, number, bits = _BODY.unpack(data[:-4])
    if magic != _MAGIC or of_job != job or bits >> MESSAGE_BITS:
        return None
    return message_of(bits, number)
