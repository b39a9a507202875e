import torch
from monai.data import DataLoader, Dataset
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from small import told

if __name__ == "__main__":
    torch.manual_seed(0)
    one = torch.ones(1, 1)
    data = Dataset([{"image": torch.full((1, 4), i / 48), "label": one} for i in range(48)])
    network = torch.nn.Linear(4, 1)
    device = torch.device("cpu")
    trainer = SupervisedTrainer(
        device=device,
        max_epochs=2,
        train_data_loader=DataLoader(data, batch_size=4, shuffle=True),
        network=network,
        optimizer=torch.optim.SGD(network.parameters(), 0.1),
        loss_function=torch.nn.MSELoss(),
    )
    trainer.run()
    SupervisedEvaluator(
        device=device, val_data_loader=DataLoader(data, batch_size=4), network=network
    ).run()
    told(network.weight.sum())
