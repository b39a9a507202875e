"""The changelog's entry of a version, as the notes of its release.

    python .ci/release_notes.py 0.1.0

Exit code 1: the package has another version, or the changelog no dated entry of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    (version,) = sys.argv[1:]
    source = (ROOT / "__init__.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in source:
        sys.exit(f"__init__.py does not say that this is version {version}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = rf"(?ms)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.+?)(?=^## |\Z)"
    found = re.search(entry, changes)
    if found is None:
        sys.exit(f"CHANGELOG.md has no dated entry of {version}")
    print(found[1].strip())


if __name__ == "__main__":
    main()
