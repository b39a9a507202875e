"""`try_change` measures how a change of code affects a script's batches and its speed."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ..profiler.base.errors import UsageError
from .change import Change, Options
from .copies import make_copies
from .git import project_folder
from .result import TryResult
from .running import script_of
from .scratch import scratch_folder
from .turns import Trial


def try_change(
    script: Sequence[str],
    change: Change,
    *,
    here: Path,
    options: Options,
    ask: Callable[[Sequence[str]], None] = lambda linked: None,
    say: Callable[[str], None] = lambda what: None,
) -> TryResult:
    """Run a script with and without a change of its project, in copies, in turns.

    `script`: as on the command line of `loaderscope run` (`["train.py", "--lr", "0.1"]`,
    `["-m", "package.train"]`), called in the folder `here`. The project is not changed, and nothing
    is left behind, even if this process is killed. The scripts can still write outside of their
    folder. `ask` is called before they start, with the paths that the copies share with the
    project, and may raise. `say` is called with the current step.

    Raises UsageError if the change or the script does not exist, or the patch does not apply. A
    failure of the scripts is in the result.
    """
    root = change.root.resolve()
    place = here.resolve() if here.resolve().is_relative_to(root) else root
    command = script_of(list(script), root, place)
    say("copying the project")
    try:
        with scratch_folder() as scratch:
            copies = make_copies(change, scratch.folder)
            ask(copies.linked)
            return Trial(command, copies, options, scratch, say).run()
    except OSError as error:  # such as a full disk
        raise UsageError(f"the project cannot be copied and run: {error}") from error


def project_of(script: Sequence[str], here: Path) -> Path:
    """The project's folder: the git work tree that contains `here`, else `here`. Raises UsageError
    for a script elsewhere."""
    root = project_folder(here)
    first = (here / script[0]).resolve() if script else root
    if first.is_file() and first.suffix == ".py" and not first.is_relative_to(root):
        raise UsageError(f"{script[0]} does not lie in {root}: call it from its project's folder")
    return root
