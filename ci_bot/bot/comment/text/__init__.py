"""Words, Markdown and links that nothing can break out of."""
