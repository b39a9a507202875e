import sys

import lightning
import torch
from small import BATCH, Rows, told
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch).pow(2).mean()

    def validation_step(self, batch, index):
        self.log("val", self.layer(batch).mean())

    def test_step(self, batch, index):
        self.log("test", self.layer(batch).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Data(lightning.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Rows(), BATCH, shuffle=True)

    def val_dataloader(self):
        return DataLoader(Rows(16), BATCH)

    def test_dataloader(self):
        return DataLoader(Rows(16), BATCH)


if __name__ == "__main__":
    lightning.seed_everything(0)
    devices = int(sys.argv[1])
    logged = {}
    callbacks, loggers = [], False
    if "callback" in sys.argv:
        from lightning.pytorch.loggers.logger import DummyLogger

        from loaderscope.integrations.lightning import LoaderscopeCallback

        class Logger(DummyLogger):
            def log_metrics(self, metrics, step=None):
                logged.update(metrics)

        callbacks, loggers = [LoaderscopeCallback()], [Logger()]
    how = {"accelerator": "cpu", "devices": devices, "max_epochs": 2, "logger": loggers}
    how["strategy"] = "ddp" if devices > 1 else "auto"
    quiet = ("enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = lightning.Trainer(callbacks=callbacks, **how, **dict.fromkeys(quiet, False))
    module = Module()
    trainer.fit(module, datamodule=Data())
    trainer.test(module, datamodule=Data(), verbose=False)
    if trainer.is_global_zero:
        told(module.layer.weight.sum())
        print("LOGGED", sorted(name for name in logged if "loaderscope" in name))
