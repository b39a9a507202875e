"""Tar shards, read from end to end: for network file systems, where a stream is fast and a file is slow."""

from __future__ import annotations

from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import DROP, loader_code
from ..loader_form import form_of
from .packed import PACKED_FILE, THROUGH
from .place import copied, file_lists, target_code

# Each reader (worker of a rank) should have several shards, so that none is left without work at the end.
SHARDS_A_READER = 4
LEAST_SHARDS = 4

_CODE = '''def shard(paths, folder, count):
    """Once: the files in `count` tar files, each a run of the list."""
    part = Path(f"{folder}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for number in range(count):
        with tarfile.open(part / f"{number:05}.tar", "w") as tar:
            for place in range(number * len(paths) // count, (number + 1) * len(paths) // count):
                tar.add(paths[place], arcname=f"{place:012}")
    part.rename(folder)


class Current:
    """Stands in for the list of paths while shards are read: the file that has just been read."""

    def __init__(self, items):
        self.items, self.file = items, None

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        item = self.items[index]
        return (self.file, *item[1:]) if isinstance(item, (tuple, list)) else self.file


class Shards(IterableDataset):
    """The samples of `source`, in the order of its shards; with `buffer`, shuffled within so many files."""

    def __init__(self, source, current, folder, buffer):
        self.source, self.current, self.folder, self.buffer, self.epoch = source, current, folder, buffer, 0

    def __iter__(self):
        worker = get_worker_info()
        of, number = (worker.num_workers, worker.id) if worker else (1, 0)
        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        names = sorted(Path(self.folder).glob("*.tar"))
        order = random.Random(self.epoch)
        self.epoch += 1
        if self.buffer:
            order.shuffle(names)
        held = []
        for name in names[rank * of + number :: world * of]:
            with tarfile.open(name, "r|") as tar:
                for member in tar:
                    held.append((int(member.name), tar.extractfile(member).read()))
                    if len(held) > self.buffer:
                        yield self.sample(held.pop(order.randrange(len(held)) if self.buffer else 0))
        while held:
            yield self.sample(held.pop(order.randrange(len(held)) if self.buffer else 0))

    def sample(self, found):
        index, data = found
        self.current.file = PackedFile(data, str(index))
        return self.source[index]


'''


def shard_count(case: Case) -> int:
    """Shards to write: SHARDS_A_READER × workers × ranks."""
    ranks = case.process.world_size or 1
    return max(LEAST_SHARDS, SHARDS_A_READER * max(1, case.num_workers) * ranks)


def shards_code(case: Case) -> str | None:
    """Conversion, reading and a loader; None where files cannot stand in for the data set's paths."""
    lists = file_lists(case)
    if len(lists) != 1 or not lists[0].stands_in or case.config.get("dataset_kind") != "map":
        return None
    form = form_of(case)
    # Shards hold every sample, and each rank and worker reads its own: other orders and choices would be lost.
    dealt = str(case.config.get("sampler")).endswith("DistributedSampler")
    if not (form.plain or dealt) or case.batch_size is None:
        return None
    only = lists[0]
    opens = "open" in only.part.names or not only.part.names
    pairs = (only.attribute.items or "").rpartition(".")[2] in ("tuple", "list")
    own = only.expression("dataset")
    paths = f"[item[0] for item in {own}]" if pairs else f"list({own})"
    lines = [
        *copied(only.steps),
        f"target = {target_code(case, 'shards')}",
        "if not target.exists():",
        f"    shard({paths}, target, {shard_count(case)})  # once, by one process",
        f"{only.expression('packed')} = Current({own})",
    ]
    if opens:
        holder = ".".join(("dataset", *only.steps))
        lines += [
            "# From here on, `open` in the module of that class takes packed files, too.",
            f"names = type({holder}).__getitem__.__globals__",
            'names["open"] = through(names.get("open", open))',
        ]
    shards = f"Shards(packed, {only.expression('packed')}, target, buffer={1000 if form.shuffle else 0})"
    batches = {"batch_size": case.batch_size, "drop_last": case.config.get("drop_last") is True or DROP}
    if form.batching == "batch_size":
        batches = {}
    changes = {"shuffle": DROP, "sampler": DROP, "batch_sampler": DROP, **batches}
    lines += ["", loader_code(case, dataset=Source(shards), **changes)]
    imports = (
        "import copy\nimport io\nimport os\nimport random\nimport shutil\nimport tarfile\nfrom pathlib import Path\n\n"
        "from torch.utils.data import DataLoader, IterableDataset, get_worker_info\n\n\n"
    )
    return imports + PACKED_FILE + (THROUGH if opens else "") + _CODE + "\n".join(lines) + "\n"
