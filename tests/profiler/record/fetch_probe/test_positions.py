"""Where files that are open are read, and which of them fetching goes on in."""

from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.record.fetch_probe.positions import moved, positions
from stored_rows import Stored, store


def test_reading_moves_the_position_of_what_stays_open(tmp_path):
    path = store(tmp_path / "rows.bin")
    with path.open("rb") as read, path.open("r+b") as log, path.open("rb") as idle:
        before = positions()
        assert {idle.fileno(), read.fileno()} <= {fd for fd, _ in before}
        log.write(b"x")
        log.flush()
        assert moved(before, positions()) == set()
        assert log.fileno() not in {fd for fd, _ in positions()}
        read.read(9)
        assert moved(before, positions()) == {str(path)}
        with path.open("rb") as late:
            late.read(5)
            before = positions()
        assert moved(before, positions()) == set()


class Each(Stored):
    """Opens the file anew for each sample."""

    def read(self, index):
        with self.source as file:
            self.source = None
            return file.read(512)


def test_a_file_that_fetching_goes_on_in_is_in_the_run(tmp_path):
    """In the training process: workers have theirs to themselves."""
    path = store(tmp_path / "rows.bin")
    for kind, workers, seen in ((Stored, 0, (str(path),)), (Stored, 2, ()), (Each, 0, ())):
        data = kind(lambda: path.open("rb", buffering=0), late=bool(workers) or kind is Each)
        loader = DataLoader(data, batch_size=4, num_workers=workers)
        with path.open("rb"), (tmp_path / "log").open("a") as log:
            for _ in loaderscope.watch(loader):
                log.write("step\n")
        loaderscope.unwatch(loader)
        assert loaderscope.open_run("latest").loaders[-1].looks.moved == seen
