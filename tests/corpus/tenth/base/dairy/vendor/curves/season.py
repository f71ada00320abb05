"""Seasonal curve of a herd, copied from curves 2.3.0."""

from .coefficients import MONTHS


def expected_litres(mean, month):
    """What a farm delivers per stop in a month."""
    return round(mean * MONTHS[month - 1], 1)
