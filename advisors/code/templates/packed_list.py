"""A list in one tensor, for data sets that hold many Python objects."""

import pickle

import torch


class PackedList:
    """A list whose items are in one tensor: workers share it, and reading an item does not touch
    its memory."""

    def __init__(self, items):
        data = [pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL) for item in items]
        self.ends = torch.tensor([len(item) for item in data]).cumsum(0)
        self.data = torch.frombuffer(bytearray(b"".join(data)), dtype=torch.uint8)

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, index):
        if not 0 <= index < len(self.ends):
            raise IndexError(index)
        begin = int(self.ends[index - 1]) if index else 0
        return pickle.loads(self.data[begin : int(self.ends[index])].numpy())
