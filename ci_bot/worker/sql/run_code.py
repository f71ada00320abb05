"""What of a model's text can stand for something else in a run than while the project is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# The variables of an interval and of a run, in every form that SQLMesh gives them.
RUN_DATES = r"\b(start|end|execution|latest)_(ds|dt|date|ts|tstz|epoch|millis|hour|dtntz)\b"
# Takes templates apart; never renders one.
JINJA_PARSER = Environment(autoescape=True, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])


def list_jinja_macros(model: Model) -> list[str]:
    """The definitions of the Jinja macros that a SQL model can call."""
    registry = model.jinja_macros
    groups = (registry.root_macros, *registry.packages.values())
    return [macro.definition for group in groups for macro in group.values()]
