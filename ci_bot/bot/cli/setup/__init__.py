"""`ci-bot init`: reads a repository without running anything of it, and writes its workflows."""
