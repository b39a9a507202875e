import torch
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.optimizer import SGD
from small import BATCH, Rows, told


class Pairs(Rows):
    def __getitem__(self, index):
        return super().__getitem__(index), torch.ones(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    data = DataLoaders(
        DataLoader(Pairs(), bs=BATCH, shuffle=False), DataLoader(Pairs(16), bs=BATCH)
    )
    learner = Learner(data, torch.nn.Linear(4, 1), loss_func=torch.nn.MSELoss(), opt_func=SGD)
    learner.fit(2, 0.01)
    told(learner.model.weight.sum())
