def summarize(frame, limit):
    """The pieces of each machine and day above a limit."""
    kept = frame[frame["pieces"] >= limit]
    return kept.groupby(["machine_id", "reading_day"], as_index=False)["pieces"].sum()
