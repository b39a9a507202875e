"""Whose code a frame is, by its path alone."""

from __future__ import annotations

import pytest

from loaderscope.advisors.stacks.libraries import owner_of


@pytest.mark.parametrize(
    ("file", "library", "place"),
    [
        ("/v/lib/python3.11/site-packages/PIL/ImageFile.py", "PIL", "PIL/ImageFile.py"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", "yaml", "yaml/loader.py"),
        (r"C:\v\Lib\site-packages\numpy\lib\x.py", "numpy", "numpy/lib/x.py"),
        ("/v/lib/python3.11/site-packages/six.py", "six", "six.py"),
        ("/v/site-packages/a-1.0-py3.11.egg/a/b.py", "a", "a/b.py"),
        ("/v/site-packages/google/cloud/blob.py", "google.cloud", "google/cloud/blob.py"),
        ("/usr/lib/python3.11/json/decoder.py", "json", "python/json/decoder.py"),
        ("/v/3.13.0/lib/python3.13t/zipfile/__init__.py", "zipfile", "python/zipfile/__init__.py"),
        (r"C:\Python311\Lib\csv.py", "csv", "python/csv.py"),
        ("/usr/lib/python3.11/lib-dynload/_json.so", "json", "python/lib-dynload/_json.so"),
        ("<frozen importlib._bootstrap>", "python", "<frozen importlib._bootstrap>"),
        ("<__array_function__ internals>", "numpy", "<__array_function__ internals>"),
        ("<class 'x.argmap'> compilation 3", "python", "<class 'x.argmap'> compilation 3"),
    ],
)
def test_libraries_are_known_by_their_place(file: str, library: str, place: str) -> None:
    found = owner_of(file)
    assert (found.library, found.place, found.own) == (library, place, False)


@pytest.mark.parametrize(
    "file",
    [
        "/home/u/train.py",
        "/home/u/lib/python3-project/data.py",
        "/home/u/lib/python3.11/mine/data.py",  # no module of Python is called that
        "/tmp/ipykernel_31/1234.py",
        "<ipython-input-3-abc>",
        "<python-input-0>",
        "<stdin>",
        "patches.py",
        "",
    ],
)
def test_everything_else_is_the_users_own(file: str) -> None:
    assert owner_of(file).own


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/v/site-packages/pillow.libs/libjpeg-0a1b2c3d.so.62.4.0", "libjpeg"),
        ("/lib/x86_64-linux-gnu/libz.so.1", "libz"),
        ("/v/lib/python3.11/site-packages/PIL/_imaging.cpython-311-x86_64-linux-gnu.so", "PIL"),
        ("/v/site-packages/_cffi_backend.cpython-311-x86_64-linux-gnu.so", "_cffi_backend"),
        ("/usr/bin/python3.11", "python"),
        ("Objects/call.c", "python"),
        ("pandas/_libs/index.pyx", "pandas"),
        ("inflate.c", "compiled code"),
        ("", "compiled code"),
    ],
)
def test_compiled_code_is_never_the_users_own(file: str, library: str) -> None:
    assert owner_of(file, "f", native=True).library == library


def test_a_script_given_as_text_is_own_but_not_what_python_writes_there() -> None:
    assert owner_of("<string>", "Pictures.__getitem__").own and owner_of("<string>", "crop").own
    assert owner_of("<string>", "Point.__new__").library == "python"
