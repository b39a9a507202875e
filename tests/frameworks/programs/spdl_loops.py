import torch
from small import BATCH, Rows, told
from spdl.dataloader import DataLoader, get_pytorch_dataloader
from spdl.pipeline import PipelineBuilder

if __name__ == "__main__":
    rows, total = Rows(), 0.0
    loader = DataLoader(
        range(len(rows)), batch_size=BATCH, aggregator=torch.stack, preprocessor=rows.__getitem__
    )
    torchs = get_pytorch_dataloader(rows, batch_size=BATCH, num_workers=1, in_order=True)
    for each in (loader, torchs):
        for _ in range(2):
            for batch in each:
                total += float(batch.sum())
    builder = PipelineBuilder().add_source(range(len(rows))).pipe(rows.__getitem__)
    pipeline = builder.aggregate(BATCH).add_sink(2)
    with (built := pipeline.build(num_threads=1)).auto_stop():
        for batch in built:
            total += float(torch.stack(batch).sum())
    told(round(total, 3))  # its threads finish in an order of their own
