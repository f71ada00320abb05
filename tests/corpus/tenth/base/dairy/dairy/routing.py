"""How far tankers drive."""

import json
import math
import os
from pathlib import Path

KM_PER_DEGREE = 111.2
ROUTES = "data/routes"


def load_routes():
    """Name of a route to its stops, as (latitude, longitude)."""
    folder = Path(os.environ.get("DAIRY_ROUTES", ROUTES))
    return {
        path.stem: [tuple(stop) for stop in json.loads(path.read_text())]
        for path in sorted(folder.glob("*.json"))
    }


def round_trip(stops):
    """Kilometres from the first stop over all others and back."""
    legs = zip(stops, stops[1:] + stops[:1])
    return round(sum(math.dist(a, b) * KM_PER_DEGREE for a, b in legs), 1)
