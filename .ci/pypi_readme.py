"""Makes the README's links absolute, for the page of the package: `.ci/pypi_readme.py [FILE]`.

A package index shows the README without the repository beside it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGES = "https://github.com/loaderscope/loaderscope/blob/main/"
FILES = "https://raw.githubusercontent.com/loaderscope/loaderscope/main/"
LINK = re.compile(r"(!?)(\[[^\]\n]*\])\((?!https?:|#|mailto:)([^)\s]+)\)")


def absolute(text: str) -> str:
    """The text with every link into the repository as an address, pictures as files."""
    return LINK.sub(lambda at: f"{at[1]}{at[2]}({FILES if at[1] else PAGES}{at[3]})", text)


if __name__ == "__main__":
    readme = Path(sys.argv[1] if len(sys.argv) > 1 else "README.md")
    readme.write_text(absolute(readme.read_text(encoding="utf-8")), encoding="utf-8")
