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
