import torch
from ignite.engine import Engine, Events
from small import BATCH, Rows, told
from torch.utils.data import DataLoader

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(engine, batch):
        optimizer.zero_grad()
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    @torch.no_grad()
    def check(engine, batch):
        return model(batch).mean().item()

    trainer, evaluator = Engine(step), Engine(check)
    val = DataLoader(Rows(16), BATCH)

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate():
        evaluator.run(val)

    trainer.run(DataLoader(Rows(), BATCH, shuffle=True), max_epochs=2)
    told(model.weight.sum())
