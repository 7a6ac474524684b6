"""Every link of the built site leads somewhere, and nothing is fetched from elsewhere.

python docs/builder/check_site.py out/site
"""

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {"script": "src", "img": "src", "iframe": "src", "video": "src", "source": "src"}
_ELSEWHERE = re.compile(r"@import|url\(\s*['\"]?(?:https?:)?//")


class _Page(HTMLParser):
    """Links, what is fetched, and anchors of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and found.get("href"):
            stays = found.get("rel") in ("canonical", "prev", "next", "alternate")
            (self.links if stays else self.fetched).append(found["href"])
        elif found.get(_FETCHED.get(tag)):
            self.fetched.append(found[_FETCHED[tag]])


@cache
def _page(path):
    return _Page(path.read_text(encoding="utf-8"))


def problems(site) -> list[str]:
    """Problems of a site, a sentence each."""
    site = Path(site).resolve()
    found = []
    for path in sorted(site.rglob("*.html")):
        name, page = path.relative_to(site), _page(path)
        for link in page.fetched:
            if urlsplit(link).netloc:
                found.append(f"{name} fetches {link} from elsewhere")
        for link in [*page.links, *page.fetched]:
            found += [f"{name} links to {link}: {p}" for p in _problem(link, path, site)]
    found += [
        f"{path.relative_to(site)} is no part of a site"
        for path in sorted(site.rglob("*"))
        if path.name == "__pycache__" or path.suffix in (".py", ".pyc", ".toml")
    ]
    for path in site.rglob("*.css"):
        if _ELSEWHERE.search(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(site)} fetches from elsewhere")
    return found


def _problem(link, path, site):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if path.name == "404.html" or not target.is_relative_to(site):
        if path.name != "404.html":
            yield "it leaves the site"
        return
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        yield "there is no such file"
    elif target.suffix == ".html" and unquote(parts.fragment) not in _page(target).anchors:
        yield "there is no such anchor"


def main():
    """Entry point."""
    found = problems(sys.argv[1])
    if found:
        sys.exit("\n".join([*found[:50], f"{len(found)} problems"]))
    print("every link leads somewhere; nothing is fetched from elsewhere")


if __name__ == "__main__":
    main()
