"""An HTML page: its tags, each closed in order, and the text outside scripts and styles."""

from html.parser import HTMLParser


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.codes: list[str] = []
        self.left_open: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag not in ("meta", "link", "br", "hr", "img", "input", "col"):
            self.left_open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag == "code":
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        assert self.left_open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data
            if self._inside == "code":
                self.codes[-1] += data

    def having(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.tags
            if name == tag and attributes.items() <= found.items()
        ]
