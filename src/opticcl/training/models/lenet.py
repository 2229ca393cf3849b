"""LeNet-5, small and for ImageNet."""

from __future__ import annotations

from typing import Literal

from opticcl.training.model import Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import plain_network


@MODELS.register("lenet")
def lenet(*, variant: Literal["classic", "imagenet"] = "classic") -> Model:
    """LeNet-5.

    Args: variant: classic, 61,706 parameters; imagenet, 224x224x3 and 1000 classes, 5,491,436 parameters.
    Source: LeCun et al. 1998.
    Reading: ODDL 5.A fuses LeNet's gradients up to 16 and 32 MB, which only the larger one has any of.
    """
    return plain_network("lenet", variant)
