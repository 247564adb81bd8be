"""How a model's parameters are written to its file, and read from it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sf2el.model.bank import BankRecipe
from sf2el.model.strategy import Recipe
from sf2el.paper.kernels import KERNELS, Kernel, Sum
from sf2el.paper.settings import LearnerSettings
from sf2el.paper.strategy import PaperRecipe

Content = dict[str, Any]


def recipe_out(recipe: Recipe) -> Content:
    """Return a recipe as plain values."""
    kind = "bank" if isinstance(recipe, BankRecipe) else "paper"
    content = {
        field.name: getattr(recipe, field.name)
        for field in fields(recipe)  # type: ignore[arg-type]
        if field.name != "backend"
    }
    if isinstance(recipe, PaperRecipe):
        settings = {field.name: getattr(recipe.settings, field.name) for field in fields(LearnerSettings)}
        settings["kernel"] = [[type(term).__name__, vars(term)] for term in recipe.settings.kernel.terms()]
        content["settings"] = settings
    return content | {"kind": kind}


def recipe_in(content: Content, backend: str | None = None) -> Recipe:
    """Return the recipe of plain values."""
    values = {name: value for name, value in content.items() if name != "kind"} | {"backend": backend}
    recipe: Recipe
    if content["kind"] == "bank":
        recipe = BankRecipe(**values)
    else:
        settings = dict(values["settings"])
        kinds = {kernel.__name__: kernel for kernel in KERNELS}
        terms: list[Kernel] = [kinds[name](**parameters) for name, parameters in settings["kernel"]]
        settings["kernel"] = terms[0] if len(terms) == 1 else Sum(tuple(terms))
        recipe = PaperRecipe(**(values | {"settings": LearnerSettings(**settings)}))
    recipe.check()
    return recipe
