def group_days(days):
    """Sums the loads of each day."""
    return days.groupby(["station", "event_day"], as_index=False)["load_kg"].sum()
