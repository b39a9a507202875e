"""Says what tensors a batch has on the stand-in: `python copied_batches.py LIBRARY`."""

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).parents[2]))

import standin_device

BATCH, BATCHES = 4, 24


class Fields(Dataset):
    def __len__(self):
        return BATCH * BATCHES

    def __getitem__(self, index):
        return {"x": torch.full((300,), float(index)), "y": torch.tensor(index)}


def tensordict():
    from tensordict import TensorDict

    def made(samples):
        return TensorDict(torch.utils.data.default_collate(samples), batch_size=BATCH)

    return DataLoader(Fields(), BATCH, collate_fn=made), lambda batch: batch.to("standin")


def transformers():
    from transformers import BatchEncoding

    def made(samples):
        return BatchEncoding(torch.utils.data.default_collate(samples))

    return DataLoader(Fields(), BATCH, collate_fn=made), lambda batch: batch.to("standin")


def torch_geometric():
    from torch_geometric.data import Batch, Data

    def made(samples):
        return Batch.from_data_list(
            [Data(x=each["x"][None], y=each["y"][None]) for each in samples]
        )

    return DataLoader(Fields(), BATCH, collate_fn=made), lambda batch: batch.to("standin")


def accelerate():
    from accelerate.utils import send_to_device

    return DataLoader(Fields(), BATCH), lambda batch: send_to_device(
        [batch], "standin", non_blocking=True
    )


def lightning():
    import lightning

    model = lightning.LightningModule()
    there = torch.device("standin", 0)
    return DataLoader(Fields(), BATCH), lambda batch: model.transfer_batch_to_device(
        (batch, 3), there, 0
    )


if __name__ == "__main__":
    standin_device.switch_on().init()
    loader, send = globals()[sys.argv[1]]()
    for batch in loader:
        send(batch)
    print("RESULT", "done", flush=True)
