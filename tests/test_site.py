"""The documentation is built strictly, and reading it asks nobody else for anything."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from loaderscope.advisors.rules import NAMES
from loaderscope.cli import cli
from started import ran

pytest.importorskip("material")
ROOT = Path(__file__).parents[1]
LOADED = r"<(?:script|img|iframe)[^>]+src=\"(https?://[^\"]+)|<link[^>]+rel=\"(?:stylesheet|icon|preconnect)\"[^>]+href=\"(https?:[^\"]+)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(place)]
    done = ran(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_there_is_a_page_for_each_rule(site: Path) -> None:
    for name in NAMES:
        page = (site / "rules" / name / "index.html").read_text(encoding="utf-8")
        assert "When not to" in page and "Why it matters" in page


def test_each_command_has_its_help_there(site: Path) -> None:
    page = (site / "commands" / "index.html").read_text(encoding="utf-8")
    for name in cli.commands:
        assert f'id="{name}"' in page and f"Usage: loaderscope {name}" in page


def test_public_names_are_documented(site: Path) -> None:
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert "Record every batch of this loader" in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(LOADED, page.read_text(encoding="utf-8")), page
