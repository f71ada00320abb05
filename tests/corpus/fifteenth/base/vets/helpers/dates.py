from datetime import date, datetime, timedelta


def days_from(moment: datetime, days: int) -> date:
    """The day that is so many days after a moment."""
    return (moment + timedelta(days=days)).date()
