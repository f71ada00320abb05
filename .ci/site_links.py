"""A hook of mkdocs: links from a page to a file outside of docs/ lead to the repository.

In a clone and on GitHub such a link is a path. The site has no such file, and `--strict` would
refuse it.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\]\((?P<path>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page's text with these links made absolute."""
    folder = posixpath.dirname(posixpath.join("docs", page.file.src_uri))

    def lead(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found["path"]))
        if target.startswith("docs/"):
            return found[0]
        return f"]({config.repo_url.rstrip('/')}/blob/main/{target}{found['anchor'] or ''})"

    return _LINK.sub(lead, markdown)
