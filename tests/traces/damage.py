"""What reading a damaged trace leads to."""

from opticcl.errors import WorkloadError


def one_line(load, path, content):
    """Bytes of the workload as text, or the text of the refusal; any other exception is a fault of the reader.

    Args:
        load: writes the content to the path and reads the workload in it.
        path: of the file.
        content: of the file.
    """
    try:
        return f"{load(path, content).total_bytes}"
    except WorkloadError as error:
        return str(error)


def survives_damage(load, path, text, at, byte, cut):
    """Whether a file with one byte changed, and that file cut, are a workload or refused in one line.

    Args:
        load, path: as of `one_line`.
        text: of the whole file.
        at: place of the byte.
        byte: in place of the one there.
        cut: bytes that are left of the file [bytes].
    """
    content = bytearray(text.encode())
    content[at] = byte
    return all(one_line(load, path, bytes(damaged)).isprintable() for damaged in (content, content[:cut]))
