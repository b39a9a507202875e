import sys

import torch
from small import BATCH, Rows, told
from transformers import Trainer, TrainingArguments


class Named(Rows):
    def __getitem__(self, index):
        return {"x": super().__getitem__(index), "labels": torch.ones(1)}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        out = self.layer(x)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}


if __name__ == "__main__":
    torch.manual_seed(0)
    arguments = TrainingArguments(
        sys.argv[1],
        use_cpu=True,
        report_to=[],
        num_train_epochs=2,
        eval_strategy="steps",
        eval_steps=3,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        save_strategy="no",
        disable_tqdm=True,
    )
    callbacks = []
    if "callback" in sys.argv:
        from loaderscope.integrations.transformers import LoaderscopeCallback

        callbacks = [LoaderscopeCallback()]
    trainer = Trainer(
        Model(), arguments, train_dataset=Named(), eval_dataset=Named(16), callbacks=callbacks
    )
    told(trainer.train().training_loss)
    logs = trainer.state.log_history
    print("LOGGED", sorted({name for log in logs for name in log if "loaderscope" in name}))
