"""Users whose plays do not count."""

from pathlib import Path

from sqlmesh import macro


@macro()
def not_blocked(evaluator, column):
    folder = Path("data/blocklist")
    files = sorted(folder.iterdir()) if folder.exists() else []
    ids = ["0", *(user for file in files for user in file.read_text().split())]
    return f"NOT {column} IN ({', '.join(ids)})"
