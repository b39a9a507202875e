"""Transforms of torchvision, second version."""

import torch
from torchvision.transforms import v2

# the same names in v2, on uint8 tensors; to float only at the end, or on the device
transform = v2.Compose(
    [
        v2.ToImage(),
        # your transforms, as v2
        v2.ToDtype(torch.float32, scale=True),
    ]
)
