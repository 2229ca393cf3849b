"""Control messages as bits and as datagrams.

::

    datagram    "ODCU"  job   number   | bits 15..13: 0 | 12..1: address | 0: type |   CRC-32
                 4       4      4                        2                              4      bytes

The 13 bits of the paper are the last two bytes before the checksum. What they cannot carry, the job and the number of the
exchange, stands in front of them: with it no loss, delay, doubling or overtaking can break the protocol.

Source: ODDL section 4.B: 12 bits of address, 1 bit of type.
"""

from __future__ import annotations

import struct
from zlib import crc32

from opticcl.control.protocol import Kind, Message
from opticcl.data import load
from opticcl.errors import ParameterError

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

ADDRESS_BITS: int = load("control.toml")["oddl"]["address_bits"]["value"]
MESSAGE_BITS: int = ADDRESS_BITS + load("control.toml")["oddl"]["type_bits"]["value"]
MOST_NODES = 1 << ADDRESS_BITS

_MAGIC = b"ODCU"
_BODY = struct.Struct("!4sIIH")
DATAGRAM_BYTES = _BODY.size + 4


def bits_of(message: Message) -> int:
    """The 13 bits of a message.

    >>> f"{bits_of(Message(5, Kind.COMPLETION)):013b}"
    '0000000001011'

    Raises: ParameterError: a node that 12 bits cannot name.
    """
    if not 0 <= message.sender < MOST_NODES:
        raise ParameterError(
            f"control: {ADDRESS_BITS} bits cannot name node {message.sender}; a machine has nodes 0 to {MOST_NODES - 1}"
        )
    return message.sender << 1 | message.kind


def message_of(bits: int, number: int = 0) -> Message:
    """The message that 13 bits stand for.

    >>> message_of(0b1011)
    Message(sender=5, kind=<Kind.COMPLETION: 1>, number=0)
    """
    return Message(bits >> 1, Kind(bits & 1), number)


def datagram(job: int, message: Message) -> bytes:
    """A message as it goes over UDP."""
    body = _BODY.pack(_MAGIC, job, message.number, bits_of(message))
    return body + crc32(body).to_bytes(4, "big")


def read_datagram(job: int, data: bytes) -> Message | None:
    """The message of this job that a datagram holds, or None for anything else."""
    if len(data) != DATAGRAM_BYTES or crc32(data[:-4]).to_bytes(4, "big") != data[-4:]:
        return None
    magic, of_job, number, bits = _BODY.unpack(data[:-4])
    if magic != _MAGIC or of_job != job or bits >> MESSAGE_BITS:
        return None
    return message_of(bits, number)
