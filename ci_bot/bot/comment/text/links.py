"""Links into GitHub, built from facts of the bot; the worker only ever supplies a path."""

from __future__ import annotations

import posixpath
from urllib.parse import quote

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.text.markdown import SafeMarkdown, cell, code, link
from ci_bot.contracts.rules import RULES

_SHORT_SHA = 7


class Links:
    """Builds links for one comment. Without a repository every link is just its label."""

    def __init__(self, context: CommentContext, head: str | None = None) -> None:
        self._root = (
            f"{context.server_url.rstrip('/')}/{context.repository}" if context.repository else None
        )
        self._head = head
        self._rules = context.rules_url

    def file(
        self, path: str | None, line: int | None = None, label: str | None = None
    ) -> SafeMarkdown:
        """The file at the reviewed commit; `label` defaults to the path with its line."""
        where = f"{path}:{line}" if path and line else path or ""
        return link(cell(label or where), self.file_url(path, line))

    def file_url(self, path: str | None, line: int | None = None) -> str | None:
        """None for paths that would lead out of the repository (browsers resolve dots)."""
        if not (self._root and self._head and path):
            return None
        if path.startswith("/") or posixpath.normpath(path) != path or path.startswith(".."):
            return None
        quoted = quote(path, safe="/", errors="replace")
        anchor = f"#L{line}" if line else ""
        return f"{self._root}/blob/{self._head}/{quoted}{anchor}"

    def rule(self, id_: str) -> SafeMarkdown:
        """A rule's id, linked to its page; the linter's rules have none."""
        known = self._rules is not None and id_ in RULES
        return link(cell(id_), f"{self._rules}/{id_}.md" if known else None)

    def commit(self, sha: str | None) -> SafeMarkdown:
        """The short form of a commit, linked."""
        if not sha:
            return SafeMarkdown("–")
        url = f"{self._root}/commit/{sha}" if self._root else None
        return link(code(sha[:_SHORT_SHA]), url)

    def run(self, name: str | None) -> SafeMarkdown:
        """A workflow run by its id, with or without the attempt ("8812.2")."""
        if not name:
            return SafeMarkdown("–")
        run_id = name.partition(".")[0]
        url = f"{self._root}/actions/runs/{run_id}" if self._root and run_id.isdigit() else None
        return link(cell(name), url)
