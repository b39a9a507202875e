"""Code that puts something better in the place of a known slow function, written for a loader's
data set."""

from __future__ import annotations

from collections.abc import Callable

from ....profiler.base.metadata import clean
from ...case.case import Case
from ...case.code_text import identifier
from ...case.fetching import held
from ..batched.hugging_face import hugging_face_code, is_hugging_face
from ..inputs import held_code
from ..loader_code import dataset_class
from ..loader_form import form_of
from ..template import Value, code_from, whole
from .kind import Hot


def here(hot: Hot) -> str:
    """'patches.py:41: image = Image.open(path)' for a comment in code: one line, whatever a run
    says."""
    text = f": {hot.text}" if hot.text else ""
    return clean(f"{hot.place or '__getitem__'}{text}", 100)


def _stored(name: str, hot: Hot, use: str, ragged: bool) -> str:
    """What is to be done once, and the use of what is stored: until then nothing changes."""
    then = (
        f'# once: store(make_{name}, len(dataset), "{name}.npy"), where make_{name}(index) does '
        "what is done at\n"
        f"#     {here(hot)}\n"
        f'if os.path.exists("{name}.npy"):\n    {use}'
    )
    return code_from("once", "store", then=then, RAGGED=ragged)


def stored_code(name: str) -> Callable[[Case, Hot], str]:
    """The result of one step, stored as rows; `name` is what the step makes."""

    def code(case: Case, hot: Hot) -> str:
        use = (
            f'dataset.{name} = np.load("{name}.npy", mmap_mode="r")  # or in __init__\n'
            f"# in {dataset_class(case)}, instead: {name} = np.array(self.{name}[index])\n"
        )
        return _stored(name, hot, use, ragged=False)

    return code


def ragged_code(name: str) -> Callable[[Case, Hot], str]:
    """The same where samples differ in length."""

    def code(case: Case, hot: Hot) -> str:
        use = (
            f'dataset.{name}, dataset.ends = np.load("{name}.npy", mmap_mode="r"), '
            f'np.load("{name}.npy.ends.npy")\n'
            f"# in {dataset_class(case)}, instead:\n"
            "#     begin = self.ends[index - 1] if index else 0\n"
            f"#     {name} = np.array(self.{name}[begin : self.ends[index]])\n"
        )
        return _stored(name, hot, use, ragged=True)

    return code


def pasted(
    template: str = "", *names: str, then: str = "", **values: Value
) -> Callable[[Case, Hot], str]:
    """These definitions of a template (without names: all of it), and `then`, in which {here},
    {dataset} and {paths} stand for what they are in the case."""

    def code(case: Case, hot: Hot) -> str:
        text = then.format(here=here(hot), dataset=dataset_class(case), paths=_paths(case))
        if not template:
            return text
        return code_from(template, *names, then=text, **values) if names else whole(template)

    return code


def _paths(case: Case) -> str:
    found = held(case, "paths")
    return identifier(found[1].name if found is not None else None, "paths")


def hf_code(case: Case, hot: Hot) -> str:
    if is_hugging_face(case) and form_of(case).by_hand is None:
        return hugging_face_code(case)
    found = held_code(case.dataset, "hf")
    if found is None or found.attribute.type.endswith("IterableDataset"):
        return (
            "# where the rows come from, before they are asked for one by one: "
            '.with_format("numpy"), and\n'
            "# .batch(batch_size) with batch_size=None in the loader, instead of a row at a time "
            "at\n"
            f"#     {here(hot)}\n"
        )
    return (
        f'columns = {found.code}.with_format("numpy")[:]  # every column as one array, if they fit '
        "into memory\n"
        f"# in {dataset_class(case)}: columns[name][index] instead of a row of the table at\n#     "
        f"{here(hot)}\n"
        "# too large for that: __getitems__(self, indices), which asks the table once for all the "
        "indices of a batch\n"
    )
