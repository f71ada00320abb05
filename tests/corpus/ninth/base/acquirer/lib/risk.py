"""Approval rates of merchants."""

import pandas as pd

FALL = 0.8


def flag_falls(frame: pd.DataFrame, minimum: int = 20, weeks: int = 4) -> pd.DataFrame:
    days = (
        frame.groupby(["merchant_id", "day"], as_index=False)
        .agg(requests=("approved", "size"), approval_rate=("approved", "mean"))
        .sort_values(["merchant_id", "day"])
    )
    usual = days.groupby("merchant_id")["approval_rate"].transform(
        lambda rates: rates.shift(1).rolling(7 * weeks, min_periods=7).mean()
    )
    days["falls"] = (days["approval_rate"] < FALL * usual) & (days["requests"] >= minimum)
    return days
