"""Plain text on a terminal: its page, its width, its colours."""
