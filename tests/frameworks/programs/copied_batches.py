"""Says what tensors a batch has on the stand-in: `python copied_batches.py LIBRARY`."""

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

sys.path.insert(0, str(Path(__file__).parents[2]))

import standin_device

BATCH, BATCHES = 4, 24


class Fields(Dataset):
    def __len__(self):
        return BATCH * BATCHES

    def __getitem__(self, index):
        return {"x": torch.full((300,), float(index)), "y": torch.tensor(index)}


def collated(make):
    """Batches that are sent as a whole."""
    loader = DataLoader(Fields(), BATCH, collate_fn=lambda samples: make(default_collate(samples)))
    return loader, lambda batch: batch.to("standin")


def tensordict():
    from tensordict import TensorDict

    return collated(lambda fields: TensorDict(fields, batch_size=BATCH))


def transformers():
    from transformers import BatchEncoding

    return collated(BatchEncoding)


def torch_geometric():
    from torch_geometric.data import Batch, Data

    def made(samples):
        graphs = [Data(x=each["x"][None], y=each["y"][None]) for each in samples]
        return Batch.from_data_list(graphs)

    return DataLoader(Fields(), BATCH, collate_fn=made), lambda batch: batch.to("standin")


def accelerate():
    from accelerate.utils import send_to_device

    def send(batch):
        send_to_device([batch], "standin", non_blocking=True)

    return DataLoader(Fields(), BATCH), send


def lightning():
    import lightning

    model = lightning.LightningModule()
    there = torch.device("standin", 0)
    send = model.transfer_batch_to_device
    return DataLoader(Fields(), BATCH), lambda batch: send((batch, 3), there, 0)


if __name__ == "__main__":
    standin_device.switch_on().init()
    loader, send = globals()[sys.argv[1]]()
    for batch in loader:
        send(batch)
    print("RESULT", "done", flush=True)
