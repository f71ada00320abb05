"""`python -m ci_bot`: the image's entry point."""

from __future__ import annotations

from ci_bot.bot.cli import main

if __name__ == "__main__":
    main()
