"""Links lead somewhere, what code cites is there, the picture of rooms shows all imports; the site
is built strictly, and reading it asks nobody else for anything."""

import ast
import itertools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaderscope.advisors.rules import NAMES
from loaderscope.cli import cli
from started import ran

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
GROUPS = ("profiler", "advisors", "reports")
LOADED = r"<(?:script|img|iframe)[^>]+src=\"(https?://[^\"]+)|<link[^>]+rel=\"(?:stylesheet|icon|preconnect)\"[^>]+href=\"(https?:[^\"]+)"


def tracked() -> list[Path]:
    told = ran(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT)
    if told.returncode:
        pytest.skip("not a git checkout")
    return [path for name in told.stdout.splitlines() if (path := ROOT / name).is_file()]


def sources() -> Iterator[tuple[Path, str]]:
    """Code, with comments that go on over several lines joined."""
    for path in tracked():
        if path.suffix in (".py", ".c", ".h") and path != Path(__file__):
            yield path, re.sub(r"\s*\n[ \t]*(?:#|\*)?[ \t]*", " ", path.read_text(encoding="utf-8"))


def headings(document: Path) -> list[str]:
    text = document.read_text(encoding="utf-8")
    marks = (r"^#+ (.+)$", r"^\*\*(.+?)[:.]?\*\*")
    return [found for mark in marks for found in re.findall(mark, text, re.MULTILINE)]


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, part = target.partition("#")
        there = document.parent / name if name else document
        assert there.exists(), target
        assert not part or part in map(anchor, headings(there)), target


def test_what_code_cites_is_there() -> None:
    known, names = headings(ROOT / "docs/causes.md"), {path.name for path in tracked()}
    cited = 0
    for path, text in sources():
        for several in re.findall(r'docs/causes\.md, ("[^"]+"(?:,? and "[^"]+")*)', text):
            for heading in re.findall(r'"([^"]+)"', several):
                assert heading in known, f"{path.relative_to(ROOT)} cites {heading!r}"
                cited += 1
        if path.relative_to(ROOT).parts[0] in ("tests", ".ci"):
            continue  # they make files of their own
        for document in re.findall(r"[\w-]*[\w]\.md\b", text):
            assert document in names, f"{path.relative_to(ROOT)} names {document}"
    assert cited > 20
    kinds = (ROOT / "advisors/code/hot/function_kinds.py").read_text(encoding="utf-8")
    named = re.findall(r'[),] +# "([^"]+)"$', kinds, re.MULTILINE)
    assert len(named) > 5 and set(named) <= set(known), set(named) - set(known)


def test_causes_name_rules_that_exist() -> None:
    text = (ROOT / "docs/causes.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", text))
    assert named <= set(NAMES) and len(named) > 15, named - set(NAMES)


def _room(path: Path) -> tuple[str, str] | None:
    """(group, room) of a module; None for what is in no room."""
    parts = path.relative_to(ROOT).parts
    if parts[0] not in GROUPS or len(parts) < 2 or (len(parts) == 2 and parts[0] != "profiler"):
        return None
    return parts[0], parts[1].removesuffix(".py")


def _imports() -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for path in tracked():
        here = _room(path) if path.suffix == ".py" and path.is_relative_to(ROOT) else None
        if here is None or path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                for name in node.names:
                    there = base / name.name if (base / name.name).is_dir() else base
                    room = _room(there / "x.py" if there.is_dir() else there.with_suffix(".py"))
                    if room is not None and room[1] != "x" and room != here:
                        yield here, room


def test_the_picture_of_the_rooms_shows_every_import() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    picture = text[text.index("```mermaid") : text.index("```\n", text.index("```mermaid") + 5)]
    arrows: set[tuple[tuple[str, str], tuple[str, str]]] = set()
    group, shown = "", dict(re.findall(r"(\w+)\[(\w+)\]", picture))
    for line in picture.splitlines():
        group = line.split()[1] if "subgraph" in line else group
        steps = [re.sub(r"\[\w+\]", "", step).split(" & ") for step in line.strip().split(" --> ")]
        for before, after in itertools.pairwise(steps):
            pairs = itertools.product(before, after)
            arrows |= {((group, shown.get(a, a)), (group, shown.get(b, b))) for a, b in pairs}
    follows = set(arrows)
    while more := {(a, d) for a, b in follows for c, d in arrows if b == c} - follows:
        follows |= more
    found = set(_imports())
    assert len(found) > 50
    for here, there in found:
        told = f"{'/'.join(here)} imports {'/'.join(there)}"
        below = GROUPS.index(here[0]) > GROUPS.index(there[0])
        assert ((here, there) in follows) if here[0] == there[0] else below, told


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    place = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(place)]
    done = ran(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_there_is_a_page_for_each_rule_and_help_for_each_command(site: Path) -> None:
    for name in NAMES:
        page = (site / "rules" / name / "index.html").read_text(encoding="utf-8")
        assert "When not to" in page and "Why it matters" in page
    page = (site / "commands" / "index.html").read_text(encoding="utf-8")
    for name in cli.commands:
        assert f'id="{name}"' in page and f"Usage: loaderscope {name}" in page
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert "Record every batch of this loader" in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(LOADED, page.read_text(encoding="utf-8")), page
