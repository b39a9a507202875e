"""Pages of the site that are written from the code: a hook of mkdocs (`mkdocs.yml`).

Commands from their help, rules from their docstrings, the schema of reports, the API, the
changelog.
"""

from __future__ import annotations

import json
import re
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

import loaderscope
from loaderscope.advisors.rules import all_rules
from loaderscope.cli import cli

ROOT = Path(__file__).resolve().parent.parent
BRANCH = "blob/main"
_sources = tempfile.TemporaryDirectory(prefix="loaderscope-site-")  # links to the package's parts


@event_priority(100)  # before the plugin that reads it
def on_config(config: Any) -> Any:
    """Leave out of the navigation what is not there, and let the API be read from the package
    alone: its folder is the repository's, where environments lie too."""
    written = {name for name, _ in pages()}
    config.nav = _there(config.nav, Path(config.docs_dir), written)
    package = Path(_sources.name) / "loaderscope"
    package.mkdir()
    for part in [*ROOT.glob("*.py"), *(each.parent for each in ROOT.glob("*/__init__.py"))]:
        (package / part.name).symlink_to(part)
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [_sources.name]
    return config


def _there(nav: Any, docs: Path, written: set[str]) -> list[Any]:
    kept = []
    for entry in nav:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            kept.append({title: _there(target, docs, written)})
        elif target in written or (docs / target).exists():
            kept.append(entry)
    return kept


def on_files(files: Files, config: Any) -> Files:
    for name, text in pages():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """What lies outside the documents is shown where the source is."""
    return re.sub(r"\]\(\.\./([^)]+)\)", rf"]({config.repo_url}/{BRANCH}/\1)", markdown)


def pages() -> Iterator[tuple[str, str]]:
    """(path, Markdown) of each."""
    yield "commands.md", commands()
    rules = all_rules()
    yield "rules.md", rule_table(rules)
    for rule in rules:
        yield f"rules/{rule.name}.md", rule_page(rule)
    yield "schema.md", schema()
    yield "api.md", api()
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    yield "changelog.md", re.sub(r"\]\(docs/", "](", text)


def commands() -> str:
    """Each verb's help, as `loaderscope VERB --help` prints it."""
    found = ["# Commands", _block(_help(cli, "loaderscope"))]
    for name, command in cli.commands.items():
        found += [f"## {name}", _block(_help(command, f"loaderscope {name}"))]
    return "\n\n".join(found)


def _help(command: click.Command, name: str) -> str:
    with click.Context(command, info_name=name, terminal_width=96, max_content_width=96) as context:
        return command.get_help(context)


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def rule_table(rules: Any) -> str:
    rows = [
        f"| [`{rule.name}`](rules/{rule.name}.md) | {rule.kind} | {rule.effort} | {_first(rule)} |"
        for rule in rules
    ]
    about = (
        "Each rule looks at the stages and facts of one loader and names a change, or says why that"
        " change would not help. `loaderscope rules NAME` prints the same text as these pages."
    )
    head = ["| rule | about | effort | what it finds |", "|---|---|---|---|"]
    return "\n".join(["# Rules", "", about, "", *head, *rows, ""])


def _first(rule: Any) -> str:
    return str(rule.doc.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|"))


def rule_page(rule: Any) -> str:
    """A docstring's headings become the page's."""
    parts = [f"# {rule.name}", _first(rule), f"About {rule.kind} · {rule.effort}"]
    for part in rule.doc.split("\n\n")[1:]:
        heading, newline, body = part.partition("\n")
        if newline and not heading.startswith(" ") and body.startswith("    "):
            parts += [f"## {heading}", textwrap.dedent(body)]
        else:
            parts.append(textwrap.dedent(part))
    return "\n\n".join(parts) + "\n"


def schema() -> str:
    """The definitions of docs/report-schema.json, as tables."""
    told = json.loads((ROOT / "docs/report-schema.json").read_text(encoding="utf-8"))
    about = (
        "`loaderscope report --format json` and `Report.to_json()` write this. Readers should leave"
        " unknown keys alone: a later version may add some. The same as a schema (draft 2020-12):"
        " [report-schema.json](report-schema.json)."
    )
    found = [f"# {told['title']}", about]
    for name, definition in told["$defs"].items():
        found += [f"## {name}", definition.get("description", "")]
        fields = definition.get("properties", {}).items()
        rows = [f"| `{key}` | {_type(value)} | {_about(value)} |" for key, value in fields]
        found.append("\n".join(["| field | type | |", "|---|---|---|", *rows]))
    return "\n\n".join(found)


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(map(_type, value["anyOf"]))
    if "enum" in value or "const" in value:
        return ", ".join(f"`{each}`" for each in value.get("enum", [value.get("const")]))
    kind = value.get("type", "any")
    if kind == "array" and isinstance(value.get("items"), dict):
        return f"array of {_type(value['items'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _about(value: dict[str, Any]) -> str:
    return str(value.get("description", "")).replace("\n", " ").replace("|", "\\|")


def api() -> str:
    """The public names, from their docstrings."""
    found = ["# Python API", "`import loaderscope` loads nothing heavy: names load on first use."]
    for name in loaderscope.__all__:
        home = loaderscope._HOMES[name]
        found += [f"## loaderscope.{name}", f"::: loaderscope.{home}.{name}"]
    return "\n\n".join(found)
