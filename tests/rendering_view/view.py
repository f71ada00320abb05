"""Shows rendered comments as GitHub would, as HTML and as pictures. A tool for people, not a test.

usage: view.py --mermaid PATH/mermaid.min.js --output DIR [--open] [FILE.md ...]
       view.py --readme --mermaid PATH/mermaid.min.js
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"
# The README shows what the worker has said of a pull request on the example project.
README_SAMPLE = GOLDEN / "small_change.md"
README_PICTURE = HERE.parents[1] / ".github" / "assets" / "comment.png"
WIDTHS = {"desktop": 900, "phone": 390}
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=15000",
    "--allow-file-access-from-files",
]
# Lines of text before the first collapsed section: padding of table rows is no text.
_MEASURE = """
addEventListener('load', () => setTimeout(() => {
  const body = document.querySelector('.body'), height = 21;
  const first = [...body.children].findIndex(node => node.tagName === 'DETAILS');
  const above = [...body.children].slice(0, first < 0 ? undefined : first);
  const lines = (node, padding) => Math.max(1, Math.round((node.offsetHeight - padding) / height));
  let total = 0;
  for (const node of above) {
    if (node.tagName === 'TABLE')
      for (const row of node.querySelectorAll('tr')) total += lines(row, 13);
    else total += lines(node, node.tagName === 'PRE' ? 32 : 0);
  }
  document.title = `${document.querySelector('.frame').offsetHeight} ${total}`;
}, 3000));
"""


def page(
    markdown: str,
    *,
    width: int,
    mermaid: Path | None,
    opened: bool,
    fonts: Sequence[Path] = (),
) -> str:
    """The whole HTML page around one comment.

    Args:
        fonts: Style sheets with fonts that the machine does not have.
    """
    # GitHub makes a line break of each newline in a comment.
    options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_HARDBREAKS
    body = cmarkgfm.github_flavored_markdown_to_html(markdown, options=options)
    body = re.sub(
        r"<blockquote>\s*<p>\[!(\w+)\]\s*(.*?)</blockquote>",
        lambda hit: f'<div class="alert {hit[1].lower()}"><b>{hit[1].title()}</b><p>{hit[2]}</div>',
        body,
        flags=re.DOTALL,
    )
    body = re.sub(r'<pre lang="diff"><code>(.*?)</code></pre>', _coloured, body, flags=re.DOTALL)
    body = re.sub(
        r'<pre lang="mermaid"><code>(.*?)</code></pre>',
        r'<pre class="mermaid">\1</pre>',
        body,
        flags=re.DOTALL,
    )
    if opened:
        body = body.replace("<details>", "<details open>")
    script = f'<script src="{mermaid.resolve().as_uri()}"></script>' if mermaid else ""
    start = "mermaid.initialize({startOnLoad: true, securityLevel: 'strict'});" if mermaid else ""
    return (
        f"<!doctype html><meta charset=utf-8>"
        f"{''.join(f'<link rel=stylesheet href={sheet.resolve().as_uri()}>' for sheet in fonts)}"
        f"<style>{(HERE / 'page.css').read_text()}"
        f".frame {{ width: {width}px }}</style>{script}"
        f"<div class=frame><div class=comment><div class=author><b>github-actions</b> bot commented"
        f"</div><div class=body>{body}</div></div></div><script>{start}{_MEASURE}</script>"
    )


def _coloured(hit: re.Match[str]) -> str:
    classes = {"+": "line-add", "-": "line-del"}
    lines = [
        f'<span class="{classes[line[0]]}">{line}</span>' if line[:1] in classes else line
        for line in hit[1].split("\n")
    ]
    return f"<pre><code>{chr(10).join(lines)}</code></pre>"


def shoot(source: Path, picture: Path, width: int) -> int:
    """Takes the picture of a page and gives the lines above its first collapsed section."""
    with tempfile.TemporaryDirectory() as profile:
        chromium = ["/usr/bin/chromium", *_FLAGS, f"--user-data-dir={profile}"]
        dom = subprocess.run(
            [*chromium, f"--window-size={max(width, 500)},2000", "--dump-dom", source.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        title = re.search(r"<title>(\d+) (\d+)</title>", dom)
        height, above = (int(title[1]), int(title[2])) if title else (3000, 0)
        subprocess.run(
            [
                *chromium,
                f"--window-size={max(width, 500)},{height}",
                f"--screenshot={picture}",
                source.as_uri(),
            ],
            capture_output=True,
            check=True,
            timeout=120,
        )
    return above


def draw_readme(mermaid: Path | None, fonts: Sequence[Path]) -> int:
    """The README's picture, with the lineage that the comment shows open."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory).resolve() / "readme.html"
        text = README_SAMPLE.read_text("utf-8")
        width = WIDTHS["desktop"]
        source.write_text(page(text, width=width, mermaid=mermaid, opened=False, fonts=fonts))
        shoot(source, README_PICTURE, WIDTHS["desktop"])
    sys.stdout.write(f"{README_PICTURE}\n")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mermaid", type=Path)
    parser.add_argument("--font", type=Path, action="append", default=[], help="a style sheet")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--readme", action="store_true", help="draw the README's picture")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--width", choices=[*WIDTHS, "both"], default="both")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    if options.readme:
        if options.mermaid is None:
            parser.error("--mermaid names the script that draws the lineage")
        return draw_readme(options.mermaid, options.font)
    if options.output is None:
        parser.error("--output names the directory of the pictures")
    options.output.mkdir(parents=True, exist_ok=True)
    for source in options.files or sorted(GOLDEN.glob("*.md")):
        for name, width in WIDTHS.items():
            if options.width not in (name, "both"):
                continue
            written = options.output.resolve() / f"{source.stem}.{name}.html"
            written.write_text(
                page(
                    source.read_text("utf-8"),
                    width=width,
                    mermaid=options.mermaid,
                    opened=options.open,
                    fonts=options.font,
                )
            )
            lines = shoot(written, written.with_suffix(".png"), width)
            sys.stdout.write(f"{written.with_suffix('.png')}: {lines} lines\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
