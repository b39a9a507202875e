"""Code that replaces a known slow function, written for a loader's data set."""

from __future__ import annotations

from collections.abc import Callable

from ....profiler.base.metadata import clean
from ...case.case import Case
from ..batched.hugging_face import hugging_face_code, is_hugging_face
from ..inputs import held_code
from ..layouts.place import file_lists
from ..loader_code import dataset_class
from ..loader_form import form_of
from ..template import code_from
from .kind import Hot

Writer = Callable[[Case, Hot], str]


def here(hot: Hot) -> str:
    """'patches.py:41: image = Image.open(path)' for a comment in code: one line, whatever a run
    says."""
    text = f": {hot.text}" if hot.text else ""
    return clean(f"{hot.place or '__getitem__'}{text}", 100)


def words(text: str) -> Writer:
    """This text, in which {here}, {dataset} and {paths} are those of the case."""

    def code(case: Case, hot: Hot) -> str:
        lists = file_lists(case)
        paths = lists[0].paths if lists else "paths"
        return text.format(here=here(hot), dataset=dataset_class(case), paths=paths)

    return code


def stored_code(name: str) -> Writer:
    """The result of one step (`name`), stored as rows. Nothing changes until it is stored."""
    told = words(
        f'# once: store(make_{name}, len(dataset), "{name}.npy"), where make_{name}(index) does '
        "the same as\n#     {here}\n"
        f'if os.path.exists("{name}.npy"):\n'
        f'    dataset.{name} = np.load("{name}.npy", mmap_mode="r")  # or in __init__\n'
        f"# in {{dataset}}, instead: {name} = np.array(self.{name}[index])\n"
    )
    return lambda case, hot: code_from("once", "store", then=told(case, hot))


def joined_code(name: str) -> Writer:
    """The same of results that differ in length: one after another, and where each ends."""
    return words(
        f"# once: made = [np.asarray(…) for each index], of what it does at\n"
        "#     {here}\n"
        f'#     np.save("{name}.npy", np.concatenate(made))\n'
        '#     np.save("ends.npy", np.cumsum([len(each) for each in made]))\n'
        f'# in {{dataset}}, with both opened in __init__ (mmap_mode="r"), instead:\n'
        "#     begin = self.ends[index - 1] if index else 0\n"
        f"#     {name} = np.array(self.{name}[begin : self.ends[index]])\n"
    )


def hf_code(case: Case, hot: Hot) -> str:
    if is_hugging_face(case) and form_of(case).by_hand is None:
        return hugging_face_code(case)
    found = held_code(case.dataset, "hf")
    if found is None or found.attribute.type.endswith("IterableDataset"):
        then = (
            "# before the rows are asked for one by one, on what they come from: "
            '.with_format("numpy"), and\n'
            "# .batch(batch_size) with batch_size=None in the loader, instead of one row at\n"
            "#     {here}\n"
        )
    else:
        then = (
            f'columns = {found.code}.with_format("numpy")[:]  # each column as one array, if they '
            "fit into memory\n"
            "# in {dataset}: columns[name][index] instead of a row of the table at\n"
            "#     {here}\n"
            "# if they do not fit: __getitems__(self, indices), which asks the table once for all "
            "indices of a batch\n"
        )
    return words(then)(case, hot)
