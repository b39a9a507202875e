"""Copies of a project: what is in them, and that nothing reaches the original."""

from pathlib import Path

import pytest

from loaderscope.experiment import copies as copying
from loaderscope.experiment.change import Change
from loaderscope.experiment.copies import Copies, make_copies
from loaderscope.profiler.base.errors import UsageError
from made_projects import lay
from started import ran

DIFF = """\
--- a/train.py
+++ b/train.py
@@ -1 +1 @@
-print(1)
+print(2)
"""


def git(folder: Path, *arguments: str) -> str:
    named = ["git", "-c", "user.email=a@b.example", "-c", "user.name=a", *arguments]
    return ran(named, cwd=folder, check=True).stdout


def files(folder: Path) -> dict[str, tuple[float, bytes]]:
    """Every file, its time and content, the repository's included."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(p.relative_to(folder)): (p.stat().st_mtime, p.read_bytes()) for p in found}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    large = "x" * (copying.SMALL_BYTES + 1)
    lay(root, {"train.py": "print(1)\n", "package/__init__.py": "", "last.pt": large})
    lay(root, {"data/large.bin8": large, "data/small.txt": "x"})
    (root / "inner").symlink_to("package")
    (tmp_path / "elsewhere").mkdir()
    (root / "outer").symlink_to("../elsewhere")
    return root


@pytest.fixture
def repository(project: Path) -> Path:
    lay(project, {".gitignore": "data/\nlast.pt\n"})
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    return project


def made(tmp_path: Path, change: Change) -> Copies:
    into = tmp_path / "into"
    into.mkdir()
    return make_copies(change, into)


def texts(found: Copies, name: str) -> tuple[str, str]:
    return (found.before / name).read_text(), (found.after / name).read_text()


def test_code_is_copied_and_large_data_linked(project: Path, tmp_path: Path) -> None:
    before = files(project)
    found = made(tmp_path, Change(project, patch=DIFF))
    assert texts(found, "train.py") == ("print(1)\n", "print(2)\n")
    for side in (found.before, found.after):
        assert (side / "data/large.bin8").resolve() == (project / "data/large.bin8")
        assert not (side / "data/small.txt").is_symlink()
        assert not (side / "last.pt").is_symlink()  # a script would write it again
        assert (side / "inner").resolve() == side / "package"
        assert (side / "outer").resolve() == tmp_path / "elsewhere"
        (side / "data/small.txt").write_text("y")
        (side / "inner/__init__.py").write_text("y")
        (side / "new.txt").write_text("y")
    assert set(found.linked) == {"data/large.bin8", "outer"}
    assert files(project) == before


def test_a_large_file_that_the_patch_changes_is_copied(project: Path, tmp_path: Path) -> None:
    lay(project, {"data/large.txt": "old\n" + "x\n" * (copying.SMALL_BYTES // 2 + 1)})
    patch = "--- data/large.txt\n+++ data/large.txt\n@@ -1,2 +1,2 @@\n-old\n+new\n x\n"
    found = made(tmp_path, Change(project, patch=patch))
    assert texts(found, "data/large.txt")[1].startswith("new")
    assert (project / "data/large.txt").read_text().startswith("old")


def test_a_folder_of_very_many_files_is_linked(project, tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "MOST_HERE", 20)
    lay(project, {f"data/{number}.txt": "x" for number in range(30)})
    found = made(tmp_path, Change(project, patch=DIFF))
    assert (found.before / "data").is_symlink() and "data/" in found.linked


def test_a_repository_is_left_as_it_is_and_each_copy_has_its_own(repository, tmp_path):
    lay(repository, {"package/__init__.py": "changed = 1\n", "untracked.py": "new = 1\n"})
    git(repository, "status")  # git itself writes its index here
    before = files(repository)
    found = made(tmp_path, Change(repository, revision="HEAD"))
    assert texts(found, "package/__init__.py") == ("", "changed = 1\n")
    assert not (found.before / "untracked.py").exists()
    assert (found.after / "untracked.py").exists()
    assert (found.before / "data/large.bin8").exists()  # what git ignores lies beside both
    assert files(repository) == before
    commit = git(repository, "rev-parse", "HEAD")
    for side in (found.before, found.after):
        assert git(side, "rev-parse", "HEAD") == commit
        git(side, "add", "-A")
        git(side, "commit", "-q", "--allow-empty", "-m", "of the copy")
    assert git(found.before, "show", "--stat", "HEAD").count("train.py") == 0
    # git marks objects that a commit needs as still in use, by their time.
    after = {name: content for name, (_, content) in files(repository).items()}
    assert after == {name: content for name, (_, content) in before.items()}
    assert git(repository, "worktree", "list").count("\n") == 1


def test_two_folders(project: Path, tmp_path: Path) -> None:
    lay(tmp_path / "other", {"train.py": "print(3)\n"})
    found = made(tmp_path, Change(project, other=tmp_path / "other"))
    assert texts(found, "train.py") == ("print(1)\n", "print(3)\n")


def new(path: str, line: str, mode: str = "100644") -> str:
    """A patch that makes this file."""
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+{line}\n"


LINK = new("x", "../../elsewhere\n\\ No newline at end of file", "120000")
HOSTILE = {
    "above": DIFF.replace("/train.py", "/../victim.py"),
    "absolute": DIFF.replace("a/train.py", "/VICTIM").replace("b/train.py", "/VICTIM"),
    "through a link": new("outer/new.py", "print(2)"),
    "a link, and through it": LINK + new("x/new.py", "print(2)"),
}


@pytest.mark.parametrize("patch", HOSTILE.values(), ids=HOSTILE)
def test_a_patch_reaches_nothing_outside_of_the_copy(patch, project, tmp_path):
    victim = tmp_path / "into" / "victim.py"
    lay(victim.parent, {victim.name: "print(1)\n"})
    with pytest.raises(UsageError, match="does not apply"):
        make_copies(Change(project, patch=patch.replace("VICTIM", str(victim)[1:])), victim.parent)
    assert victim.read_text() == "print(1)\n"
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"patch": "no patch"}, "this is no patch"),
        ({"patch": DIFF.replace("print(1)", "print(7)")}, r"does not apply .*train.py"),
        ({"patch": DIFF.replace("train.py", "gone.py")}, r"does not apply .*gone.py"),
        ({"patch": DIFF.replace("print(1)", "print(0)").replace("(2)", "(1)")}, "applied already"),
        ({"revision": "HEAD"}, "lies in none"),
        ({"other": Path("/nowhere/at/all")}, "there is no folder /nowhere/at/all"),
    ],
)
def test_what_cannot_be_made_is_said(change, said, project, tmp_path):
    with pytest.raises(UsageError, match=said):
        made(tmp_path, Change(project, **change))


def test_no_such_commit(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no commit 'nosuch'"):
        made(tmp_path, Change(repository, revision="nosuch"))
