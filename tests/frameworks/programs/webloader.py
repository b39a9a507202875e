import io
import pathlib
import sys
import tarfile

import torch
import webdataset as wds
from small import told

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for shard in range(2):
        with tarfile.open(folder / f"{shard}.tar", "w") as tar:
            for row in range(24):
                data = str(shard * 24 + row).encode()
                info = tarfile.TarInfo(f"{shard:02}{row:02}.txt")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    shards = [str(folder / f"{shard}.tar") for shard in range(2)]
    rows = wds.WebDataset(shards, shardshuffle=False).to_tuple("txt")
    rows = rows.map_tuple(lambda text: torch.tensor(float(text)))
    loader = wds.WebLoader(rows.batched(4), batch_size=None)
    total = 0.0
    for _ in range(2):
        for number, (batch,) in enumerate(loader):
            total += float(batch.sum()) * number
    told(total)
