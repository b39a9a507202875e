import os
import sys

import torch
from small import BATCH, Rows, told
from torch.utils.data import DataLoader


def train(config):
    import ray.train
    import ray.train.torch

    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(torch.nn.Linear(4, 1))
    loader = ray.train.torch.prepare_data_loader(DataLoader(Rows(), BATCH, shuffle=True))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        for batch in loader:
            loss = model(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    ray.train.report({"loss": float(loss.detach())})


if __name__ == "__main__":
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    here = os.path.dirname(os.path.abspath(__file__))
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    ray.init(num_cpus=3, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
    two, where = ScalingConfig(num_workers=2), RunConfig(storage_path=sys.argv[1])
    TorchTrainer(train, scaling_config=two, run_config=where).fit()
    told("trained")
    ray.shutdown()
