"""What the report's page costs: writing it, its size, and how soon a browser has drawn it.

    .venv/bin/python -m tests.benchmarks.bench_webpage

Needs chromium. Five runs each; the table has the medians. Written is processor time; drawn is what
the page itself measures from the beginning of its load; opened is from the outside, until two
further pictures are drawn.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from ci_bot.bot.report.html.page import render_html_page
from tests.browser import browser
from tests.factories import make_context
from tests.webpage_reports import large

SIZES = ((1_000, 1_000), (5_000, 2_000))
RUNS = 5


def main() -> None:
    print("| models | changed | written | size | drawn | opened | zoomed |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as home, browser() as tab:
        tab.resize(1400)
        file = Path(home) / "report.html"
        for models, changed in SIZES:
            report = large(models, changed)
            written, drawn, opened, zoomed = [], [], [], []
            for _ in range(RUNS):
                start = time.process_time()
                text = render_html_page(report, make_context())
                written.append(time.process_time() - start)
                file.write_text(text, encoding="utf-8")
                start = time.perf_counter()
                tab.open(file)
                opened.append(time.perf_counter() - start)
                drawn.append(int(tab.ask("document.documentElement.dataset.drawn")) / 1_000)
                start = time.perf_counter()
                tab.ask("document.querySelector('.tools button').click()")
                tab.settle()
                zoomed.append(time.perf_counter() - start)
            times = " | ".join(f"{median(t):.2f} s" for t in (drawn, opened, zoomed))
            size = len(text.encode()) / 1e6
            print(
                f"| {models:,} | {changed:,} | {median(written):.2f} s | {size:.1f} MB | {times} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
