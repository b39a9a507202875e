"""A training whose figures go live to the libraries named after the folder, set up as users do."""

import os
import sys

import torch
from small import BATCH, Rows, told
from torch.utils.data import DataLoader

from loaderscope.integrations import scalars

FOLDER, NAMES = sys.argv[1], sys.argv[2:]


def tensorboard():
    return scalars.TensorBoard(os.path.join(FOLDER, "events"))


def prometheus():
    return scalars.Prometheus(os.path.join(FOLDER, "train.prom"))


def opentelemetry():
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import (
        ConsoleMetricExporter,
        PeriodicExportingMetricReader,
    )

    out = open(os.path.join(FOLDER, "otel.jsonl"), "w")  # noqa: SIM115 open until the provider's shutdown at exit
    exporter = ConsoleMetricExporter(
        out=out, formatter=lambda data: data.to_json(indent=None) + "\n"
    )
    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(exporter, 200)]))
    return scalars.OpenTelemetry()


def wandb():
    import wandb

    return scalars.WandB(
        wandb.init(mode="offline", dir=FOLDER, settings=wandb.Settings(console="off", silent=True))
    )


def mlflow():
    import mlflow

    mlflow.set_tracking_uri("file://" + FOLDER + "/mlruns")
    return scalars.MLflow(mlflow.start_run().info.run_id)


def log(epoch, loss):
    """The training's own, with steps of its own choice in the last epoch."""
    if "wandb" in NAMES:
        import wandb

        wandb.run.log({"loss": loss}, step=100) if epoch == 3 else wandb.run.log({"loss": loss})
    if "mlflow" in NAMES:
        import mlflow

        mlflow.log_metric("loss", loss, step=epoch)


if __name__ == "__main__":
    total = torch.zeros(())
    with scalars.live(*(globals()[name]() for name in NAMES), every_s=0.1):
        for epoch in range(4):
            for batch in DataLoader(Rows(), BATCH):
                total += batch.mean()
            log(epoch, float(total))
    if "wandb" in NAMES:
        import wandb

        wandb.finish()
    told(total)
