from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.training.model import Layer, Model

Image = tuple[int, int, int]  # channels, height, width
MOST_LAYERS = 10_000  # and tables


def conv(
    name: str,
    image: Image,
    channels: int,
    kernel: int | Sequence[int],
    *,
    stride: int = 1,
    padding: int | None = None,
    groups: int = 1,
    norm: bool = False,
) -> tuple[Layer, Image]:
    """A convolution, and the image that it returns.

    Args:
        name: of the layer.
        image: its input.
        channels: of its output [count].
        kernel: side, or height and width [elements].
        stride: of the kernel in both directions [elements].
        padding: on every side; None: half of the kernel, which keeps the size at stride 1 [elements].
        groups: into which the input channels are divided [count].
        norm: whether a batch normalisation replaces the bias.
    """
    high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
    after = (channels, _side(image[1], high, stride, padding), _side(image[2], wide, stride, padding))
    elements = channels * after[1] * after[2]
    weights = channels * (image[0] // groups) * high * wide
    tensors = (weights, channels, channels) if norm else (weights, channels)
    # A normalisation needs its input in the backward pass and the next layer its output.
    kept = elements * (2 if norm else 1)
    return Layer(name, "conv", tensors, weights * after[1] * after[2], elements, kept), after


def _side(size: int, kernel: int, stride: int, padding: int | None) -> int:
    return (size + 2 * (kernel // 2 if padding is None else padding) - kernel) // stride + 1


def pooled(image: Image, kernel: int, stride: int, padding: int | None = 0) -> Image:
    """The image that a pooling layer returns; pooling has no parameters and is not counted as work.

    Args:
        image: its input.
        kernel: side of the window [elements].
        stride: of the window in both directions [elements].
        padding: on every side; None: half of the window [elements].
    """
    return image[0], _side(image[1], kernel, stride, padding), _side(image[2], kernel, stride, padding)


def linear(name: str, inputs: int, outputs: int, *, rows: int = 1) -> Layer:
    """A fully connected layer with a bias.

    Args:
        name: of the layer.
        inputs: elements of an input vector [count].
        outputs: elements of an output vector [count].
        rows: vectors of a sample [count].
    """
    return Layer(name, "linear", (inputs * outputs, outputs), rows * inputs * outputs, rows * outputs, rows * outputs)


def stack(rows: Sequence[Mapping[str, Any]], image: Image) -> tuple[Layer, ...]:
    """A plain network: convolutions and pools, then fully connected layers, as the TOML files of this package describe it.

    Args:
        rows: tables `layers` of the file, in order.
        image: input of the first.
    """
    return tuple(_stack(rows, image))


def _stack(rows: Sequence[Mapping[str, Any]], image: Image) -> Iterator[Layer]:
    width = 0
    numbers = {"conv": 0, "linear": 0}
    for row in rows:
        if "pool" in row:
            image = pooled(image, row["pool"], row["stride"])
            continue
        kind = "conv" if "conv" in row else "linear"
        numbers[kind] += 1
        if kind == "conv":
            layer, image = conv(
                f"conv{numbers[kind]}",
                image,
                row["conv"],
                row["kernel"],
                stride=row.get("stride", 1),
                padding=row.get("padding", 0),
                groups=row.get("groups", 1),
            )
        else:
            layer = linear(f"fc{numbers[kind]}", width or image[0] * image[1] * image[2], row["linear"])
            width = row["linear"]
        yield layer


def plain_network(name: str, variant: str) -> Model:
    """The model that a variant of a TOML file of this package describes.

    Args:
        name: of the model and of the file.
        variant: table of the file.
    """
    table = read_toml("opticcl.training.models", f"{name}.toml")[variant]
    image = tuple(table["input"])
    return Model(name, table["source"], "image of {1}x{2}x{0}".format(*image), stack(table["layers"], image))


def attention(
    name: str,
    hidden: int,
    heads: int,
    sequence: int,
    *,
    fused: bool = True,
    biases: tuple[int, ...] | None = None,
    extra: tuple[int, ...] = (),
) -> Layer:
    """Multi-head self-attention with its normalisation, the first half of a transformer block.

    Megatron divides the heads: query, key and value by columns, the projection by rows. Activations kept for the backward
    pass: 6.5 elements for each element of the sequence, 2.5 for each pair of tokens in each head.

    Args:
        name: of the layer.
        hidden: width of a token [elements].
        heads: number of heads.
        sequence: tokens of a sample [count].
        fused: query, key and value are one tensor; else three.
        biases: of query, key and value, where they are not those of `fused`.
        extra: further tensors, whole on every device.
    Source: Korthikanti et al. 2022, section 4.1.
    """
    parts = 1 if fused else 3
    if biases is None:
        biases = (3 * hidden // parts,) * parts
    split = (3 * hidden * hidden // parts,) * parts + biases + (hidden * hidden,)
    whole = (hidden, hidden, hidden, *extra)  # the normalisation's two and the projection's bias
    return Layer(
        name,
        "attention",
        whole[:2] + split + whole[2:],
        macs=sequence * 4 * hidden * hidden + 2 * sequence * sequence * hidden,
        outputs=sequence * hidden,
        activations=(13 * sequence * hidden + 5 * heads * sequence * sequence) // 2,
        split=(False, False) + (True,) * len(split) + (False,) * len(whole[2:]),
        ways=heads,
        gathered=2 * sequence * hidden,
    )


def feed_forward(name: str, hidden: int, width: int, sequence: int, *, extra: tuple[int, ...] = ()) -> Layer:
    """Two fully connected layers with their normalisation, the second half of a transformer block.

    Megatron divides the first by columns and the second by rows. Activations kept for the backward pass: 2.5 elements for
    each element of the sequence, 2 for each element of the wide layer.

    Args:
        name: of the layer.
        hidden: width of a token [elements].
        width: of the layer between the two [elements].
        sequence: tokens of a sample [count].
        extra: further tensors, whole on every device.
    Source: Korthikanti et al. 2022, section 4.1.
    """
    return Layer(
        name,
        "feed_forward",
        (hidden, hidden, hidden * width, width, width * hidden, hidden, *extra),
        macs=2 * sequence * hidden * width,
        outputs=sequence * hidden,
        activations=5 * sequence * hidden // 2 + 2 * sequence * width,
        split=(False, False, True, True, True, False) + (False,) * len(extra),
        ways=width,
    )


def embedding(name: str, vocabulary: int, hidden: int, sequence: int, whole: tuple[int, ...] = ()) -> Layer:
    """An embedding, divided by rows of the vocabulary among tensor-parallel devices.

    Args:
        name: of the layer.
        vocabulary: rows of the matrix [count].
        hidden: width of a token [elements].
        sequence: tokens of a sample [count].
        whole: parameters of further tensors, whole on every device.
    """
    elements = sequence * hidden
    split = (True,) + (False,) * len(whole)
    return Layer(name, "embedding", (vocabulary * hidden, *whole), 0, elements, elements, split, vocabulary)


def check_heads(what: str, hidden: int, heads: int) -> None:
    """Check that the heads divide the hidden dimension.

    Args:
        what: name of the model, for the message.
        hidden: width of a token [elements].
        heads: number of heads.
    Raises: ParameterError: they do not.
    """
    if hidden % heads:
        near = next(n for n in range(heads, 0, -1) if hidden % n == 0)
        raise ParameterError(f"{what}: heads={heads} does not divide hidden={hidden}; try heads={near}")


def check_positive(what: str, **values: int) -> None:
    """Check that parameters of a model are at least 1, and that layers and tables are at most `MOST_LAYERS`.

    Args:
        what: name of the model, for the message.
        values: by parameter.
    Raises: ParameterError: one is out of range.
    """
    for name, value in values.items():
        if value < 1:
            raise ParameterError(f"{what}: {name}={value} is not positive; give at least 1")
        if name in ("layers", "tables") and value > MOST_LAYERS:
            raise ParameterError(f"{what}: {name}={value} is more than {MOST_LAYERS:,}; give fewer")
