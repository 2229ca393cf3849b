"""AlexNet, with both halves in one, as printed and as one tower."""

from __future__ import annotations

from typing import Literal

from opticcl.training.model import Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import plain_network


@MODELS.register("alexnet")
def alexnet(*, variant: Literal["merged", "grouped", "one_tower"] = "merged") -> Model:
    """AlexNet.

    Args: variant: merged, 62,378,344 parameters; grouped, 60,965,224; one_tower, 61,100,840 as in torchvision.
    Source: Krizhevsky et al. 2012; Krizhevsky 2014.
    Reading: WRHT 5.1 gives 62.3M parameters, which is the merged one.
    """
    return plain_network("alexnet", variant)
