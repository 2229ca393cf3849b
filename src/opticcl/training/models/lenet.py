"""LeNet-5, small and for ImageNet."""

from __future__ import annotations

from typing import Literal

from opticcl.files import read_toml
from opticcl.training.model import Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import stack


@MODELS.register("lenet")
def lenet(*, variant: Literal["classic", "imagenet"] = "classic") -> Model:
    """LeNet-5.

    Args: variant: classic, 61,706 parameters; imagenet, 224x224x3 and 1000 classes, 5,491,436 parameters.
    Source: LeCun et al. 1998.
    Reading: ODDL 5.A fuses LeNet's gradients up to 16 and 32 MB, which only the larger one has any of.
    """
    table = read_toml("opticcl.training.models", "lenet.toml")[variant]
    image = table["input"]
    sample = "image of {1}x{2}x{0}".format(*image)
    return Model("lenet", table["source"], sample, stack(table["layers"], tuple(image)))
