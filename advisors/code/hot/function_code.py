"""Code that replaces a known slow function, written for a loader's data set."""

from collections.abc import Callable

from ....profiler.base.metadata import clean
from ...case.case import Case
from ..batched.hugging_face import hugging_face_code, is_hugging_face
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
    """This text, in which {here} and {dataset} are those of the case."""
    return lambda case, hot: text.format(here=here(hot), dataset=dataset_class(case))


def stored_code(name: str) -> Writer:
    """The result of one step (`name`), stored as rows. Nothing changes until it is stored."""
    told = words(f"""\
# once: store(make_{name}, len(dataset), "{name}.npy"), where make_{name}(index) does the same as
#     {{here}}
if os.path.exists("{name}.npy"):
    dataset.{name} = np.load("{name}.npy", mmap_mode="r")  # or in __init__
# in {{dataset}}, instead: {name} = np.array(self.{name}[index])
""")
    return lambda case, hot: code_from("once", "store", then=told(case, hot))


def joined_code(name: str) -> Writer:
    """The same of results that differ in length: one after another, and where each ends."""
    return words(f"""\
# once: made = [np.asarray(…) for each index], of what it does at
#     {{here}}
#     np.save("{name}.npy", np.concatenate(made))
#     np.save("ends.npy", np.cumsum([len(each) for each in made]))
# in {{dataset}}, with both opened in __init__ (mmap_mode="r"), instead:
#     begin = self.ends[index - 1] if index else 0
#     {name} = np.array(self.{name}[begin : self.ends[index]])
""")


def hf_code(case: Case, hot: Hot) -> str:
    if is_hugging_face(case) and form_of(case).by_hand is None:
        return hugging_face_code(case)
    told = words("""\
# by columns: columns = table.with_format("numpy")[:], if they fit into memory, and in {dataset}
# columns[name][index]; of a stream, .batch(batch_size) with batch_size=None in the loader;
# else __getitems__(self, indices), which asks the table once for all of a batch, instead of one
# row at
#     {here}
""")
    return told(case, hot)
