"""The names of the parts of torch and torchdata that measuring uses. Each is looked up here by its
role.

These names are private to torch. They are checked before a part is used: `missing_*` say in words
which parts are not where they were in every tried torch, and what depends on them stays bare.
`iterators` and the compiled form name the attributes that they read once per batch. These are
checked here too.

No part of torch is imported before it is asked for: see `worker_target`.
"""

from __future__ import annotations

import dis
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

# The releases on which `make test-torch` has measured every stage and found every case harmless.
TRIED = ("2.4", "2.7", "2.13", "2.15")
# Of a loader with workers that is given none.
DEFAULT_PREFETCH = 2


@dataclass(frozen=True)
class Kind:
    """One kind of loader, and where its parts are."""

    package: str  # whose version tells one shape from another
    module: str
    loader: str
    single: str  # its iterator without workers
    multi: str  # and with
    worker_module: str
    worker_names: tuple[str, ...]  # how the constructor of `multi` comes to the worker's loop


TORCH = Kind(
    "torch",
    "torch.utils.data.dataloader",
    "DataLoader",
    "_SingleProcessDataLoaderIter",
    "_MultiProcessingDataLoaderIter",
    "torch.utils.data._utils.worker",
    ("_utils", "worker", "_worker_loop"),
)
TORCHDATA = Kind(
    "torchdata",
    "torchdata.stateful_dataloader.stateful_dataloader",
    "StatefulDataLoader",
    "_StatefulSingleProcessDataLoaderIter",
    "_StatefulMultiProcessingDataLoaderIter",
    "torchdata.stateful_dataloader.worker",
    ("_worker_loop",),
)

_FETCHERS = ("_MapDatasetFetcher", "_IterableDatasetFetcher")

# What the hooks of an iterator take the place of, and what they and the fetching hooks read.
_METHODS = ("__next__", "_next_index", "_next_data")
_SINGLE = (
    "_sampler_iter",
    "_dataset_fetcher",
    "_auto_collation",
    "_dataset",
    "_num_yielded",
    "_pin_memory",
)
_MULTI_METHODS = ("_process_data", "_reset")
_MULTI = (
    "_send_idx",
    "_rcvd_idx",
    "_tasks_outstanding",
    "_worker_result_queue",
    "_workers",
    "_num_workers",
    "_auto_collation",
    "_pin_memory",
)


# What changing an iterator for another in mid-epoch reads and calls, of the one with workers.
_SWITCH = (
    "_task_info",
    "_index_queues",
    "_workers_done_event",
    "_worker_pids_set",
    "_mark_worker_as_unavailable",
    "_shutdown_workers",
    "_try_put_index",
    "_prefetch_factor",
    "_persistent_workers",
    "_shutdown",
    "_set_worker_pids",
    "_remove_worker_pids",
    "multiprocessing_context",
    "_send_idx",
)


# What a worker's loop is given, by its own names. The data set is left out: some releases pass it,
# others pass a list that the loop empties. The loop's fetcher has it, see `dataset_of`.
TASKS, BATCHES, WORKER = "index_queue", "data_queue", "worker_id"
STATE = "worker_state"  # torchdata's alone, whose messages hold a flag or a state beside the batch


def loop_parts(loop: Callable[..., None], *args: Any) -> dict[str, Any]:
    """The arguments of this worker loop by name. Raises LookupError, in words, where it has no
    TASKS, BATCHES or WORKER."""
    names = inspect.signature(loop).parameters
    for name in (TASKS, BATCHES, WORKER):
        if name not in names:
            raise LookupError(f"its worker loop has no {name!r}")
    return dict(zip(names, args, strict=False))


def worker_loop(kind: Kind) -> Callable[..., None]:
    """What a worker of this kind of loader runs. ImportError or AttributeError where it is
    elsewhere."""
    found: Callable[..., None] = getattr(import_module(kind.worker_module), kind.worker_names[-1])
    return found


def iterator_base() -> type:
    """The class all iterators of loaders inherit from."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    return _BaseDataLoaderIter


def fetcher_maker() -> Any:
    """The class whose static method `create_fetcher` is called once for each fetcher."""
    from torch.utils.data import _DatasetKind

    return _DatasetKind


def dataset_of(fetcher: Any) -> tuple[Any, bool]:
    """(the data set it fetches from, whether it collates batches by itself)."""
    return fetcher.dataset, fetcher.auto_collation


def samples_of(index: Any, auto_collation: bool) -> int:
    """How many samples the indices stand for: as torch without automatic batching, one; -1 where
    that is not plain."""
    kind = type(index)
    if kind is list or (kind is getattr(sys.modules.get("numpy"), "ndarray", None) and index.ndim):
        return len(index)
    return -1 if auto_collation else 1


def worker_signals() -> tuple[type, type]:
    """What workers send in place of a batch: (an exception, the end of an iterable data set)."""
    from torch._utils import ExceptionWrapper
    from torch.utils.data._utils.worker import _IterableDatasetStopIteration

    return ExceptionWrapper, _IterableDatasetStopIteration


def pinner() -> Any:
    """The function that pins a batch."""
    from torch.utils.data._utils.pin_memory import pin_memory

    return pin_memory


def samplers_begun(multi: bool) -> int:
    """How often an iterator asks its sampler for an iterator when an epoch begins."""
    reset = getattr(iterator_base(), "_reset", None)
    return 1 + (multi and "_sampler_iter" in names_used(reset))


def under_way(iterator: Any) -> int:
    """Batches that were asked for and not given yet."""
    return len(getattr(iterator, "_task_info", ()))


def hold(iterator: Any) -> None:
    """It is given no more tasks, and ends once what is under way is given."""
    iterator._sampler_iter = iter(())


def go_on(iterator: Any, order: Iterator[Any]) -> None:
    """An iterator that was held draws from here again."""
    iterator._sampler_iter = order
    if hasattr(iterator, "_workers"):
        for _ in range(iterator._prefetch_factor * iterator._num_workers - under_way(iterator)):
            iterator._try_put_index()


def has_room(iterator: Any) -> bool:
    """Whether an iterator with workers may be given another task. A batch that came before its turn
    is under way too: torch asks for another one as it gives it."""
    return bool(under_way(iterator) < iterator._prefetch_factor * iterator._num_workers)


def put_task(iterator: Any) -> None:
    """It draws an index, and gives a worker the task of making its batch."""
    iterator._try_put_index()


def finished(iterator: Any) -> bool:
    """Whether all tasks are done, or never will be because a worker has ended."""
    names = ("_worker_result_queue", "_data_queue")  # may be the same, of a context of the user's
    queues = [getattr(iterator, name) for name in names if hasattr(iterator, name)]
    try:
        waiting = sum(queue.qsize() for queue in {id(queue): queue for queue in queues}.values())
    except NotImplementedError:  # macOS does not count
        return True
    return waiting >= iterator._tasks_outstanding or not all(
        worker.is_alive() for worker in iterator._workers
    )


def fetcher_of(loader: Any) -> Any:
    """What fetches batches in this process as torch's own iterator without workers does."""
    make = fetcher_maker().create_fetcher
    collates = loader._auto_collation
    return make(loader._dataset_kind, loader.dataset, collates, loader.collate_fn, loader.drop_last)


def check_number_of_workers(loader: Any) -> None:
    """As torch does where a loader's workers begin: a warning names the same line of torch's."""
    method = type(loader)._get_iterator
    while hasattr(method, "__wrapped__"):
        method = method.__wrapped__
    name = "check_worker_number_rationality"
    lines, line = dict(dis.findlinestarts(method.__code__)), 0
    for each in dis.get_instructions(method):
        line = lines.get(each.offset) or line
        if each.argval == name:
            break
    if name in method.__code__.co_names:
        code = compile("\n" * (line - 1) + f"loader.{name}()", method.__code__.co_filename, "exec")
        exec(code, method.__globals__, {"loader": loader})


def kill_if_stuck(iterator: Any, error: BaseException) -> None:
    """End workers for which torch has waited until `timeout`: it would also wait for their end."""
    if str(error).startswith("DataLoader timed out after"):
        for worker in getattr(iterator, "_workers", ()):
            worker.terminate()


def dismiss(iterator: Any) -> None:
    """Tell the workers of an idle iterator to end. `dismissed` says when they have."""
    if iterator._shutdown:  # it came to its end before
        return
    if hasattr(iterator, "_pin_memory_thread"):
        iterator._pin_memory_thread_done_event.set()
        iterator._worker_result_queue.put((None, None))
    iterator._workers_done_event.set()
    for worker in range(len(iterator._workers)):
        iterator._mark_worker_as_unavailable(worker, shutdown=True)


def dismissed(iterator: Any) -> bool:
    """Whether the workers have ended: shutting down does not wait then."""
    return not any(worker.is_alive() for worker in iterator._workers)


def let_die(iterator: Any) -> None:
    """Have the death of a worker raise in this iterator's next batch, and not in whatever code
    runs."""
    if getattr(iterator, "_worker_pids_set", False):
        import_module("torch.utils.data._utils.signal_handling")._remove_worker_pids(id(iterator))
        iterator._worker_pids_set = False


def watch_over(iterator: Any) -> None:
    """Have torch watch these workers, which started after their iterator was made."""
    signals = import_module("torch.utils.data._utils.signal_handling")
    signals._set_worker_pids(id(iterator), tuple(worker.pid for worker in iterator._workers))
    iterator._worker_pids_set = True


def start_feeding(iterator: Any) -> None:
    """Start the threads that feed the queues of workers without a task so far. Torch would start
    them at the end, to stop the workers. For an iterator that is garbage, Python would have closed
    the queue's pipe by then: the thread fails, or closes a descriptor that now belongs to another
    file."""
    for queue in iterator._index_queues:
        with queue._notempty:
            if queue._thread is None:
                queue._start_thread()


# The self-check.


def missing_of_switch() -> tuple[str, ...]:
    """What is not where changing iterators in mid-epoch looks for it, in words."""
    multi = getattr(sys.modules[TORCH.module], TORCH.multi)
    used = _names_in(multi)
    return tuple(f"its {multi.__name__} has no {name!r}" for name in _SWITCH if name not in used)


def missing_of_iterator(cls: type) -> tuple[str, ...]:
    """What is not where the hooks of this iterator class look for it, in words."""
    multi = hasattr(cls, "_process_data")
    needed = (*_METHODS, *_MULTI_METHODS) if multi else _METHODS
    missing = [name for name in needed if not callable(getattr(cls, name, None))]
    used = _names_in(cls)
    missing += [name for name in (_MULTI if multi else _SINGLE) if name not in used]
    words = [f"its {cls.__name__} has no {name!r}" for name in missing]
    return tuple(words if multi else [*words, *_missing_of_fetchers()])


def missing_of_worker(kind: Kind) -> tuple[str, ...]:
    """What is not where the hooks inside a worker look for it, in words."""
    missing: list[str] = []
    try:
        constructor = getattr(sys.modules[kind.module], kind.multi).__init__
        if not set(kind.worker_names) <= names_used(constructor):
            missing.append("it starts its workers in another way")
        loop = worker_loop(kind)
        loop_parts(loop)
        makes = "create_fetcher" in names_used(loop)
        if not makes or not hasattr(fetcher_maker(), "create_fetcher"):
            missing.append("its worker loop makes its fetcher in another way")
        worker_signals()
    except (LookupError, ImportError, AttributeError) as error:
        missing.append(
            str(error) if type(error) is LookupError else f"a part is elsewhere ({error})"
        )
    return (*missing, *_missing_of_fetchers())


def _missing_of_fetchers() -> list[str]:
    """Between fetching and collating a fetcher looks up its `collate_fn`: without that the two
    cannot be told apart."""
    found = import_module("torch.utils.data._utils.fetch")
    missing = []
    for name in _FETCHERS:
        cls = getattr(found, name, object)
        collates = "collate_fn" in names_used(getattr(cls, "fetch", None))
        if not collates or not {"dataset", "auto_collation"} <= _names_in(cls):
            missing.append(f"its {name} works in another way")
    return missing


def names_used(*functions: Any) -> set[str]:
    """The names that the code of these functions uses, also of functions inside them. Other objects
    use none."""
    held = (getattr(each, "__code__", None) for each in functions)
    return {name for code in held for each in codes(code) for name in each.co_names}


def codes(code: Any) -> Iterator[types.CodeType]:
    """This code object and those inside it; nothing for any other object."""
    if type(code) is types.CodeType:
        yield code
        for constant in code.co_consts:
            yield from codes(constant)


def _names_in(cls: type) -> set[str]:
    return names_used(*(value for base in cls.__mro__ for value in vars(base).values()))


# Versions.


def untried(version: str | None) -> str | None:
    """A sentence if this torch was never tried; None if it was, or is unknown."""
    numbers = re.match(r"(\d+\.\d+)", version or "")
    if numbers is None or numbers[1] in TRIED:
        return None
    return f"torch {version} was never tried with this Loaderscope (tried: {', '.join(TRIED)})"
