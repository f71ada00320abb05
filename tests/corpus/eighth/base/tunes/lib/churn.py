"""What the churn model counts."""

import pandas as pd


def count_by_plan(frame: pd.DataFrame) -> pd.DataFrame:
    """Users that left and users that stayed, by plan and country; users without a plan count, too."""
    frame = frame.drop_duplicates(subset=["user_id"], keep="first")
    frame["left_us"] = (frame["state"] == "ended").astype("int64")
    frame["stayed"] = (frame["state"] != "ended").astype("int64")
    grouped = frame.groupby(["plan", "country"], dropna=False, as_index=False)
    return grouped[["left_us", "stayed"]].sum()
