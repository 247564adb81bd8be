"""What a bank lets go of once labels have spoken against it, where bytes are short.

It is gone through when the map is fitted anew: whenever the rows of a space have grown by a quarter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sf2el import events
from sf2el.events import Happened
from sf2el.memory.bank_sizes import AMPLE_BASIS, FEW_BASIS
from sf2el.memory.giving_way import drop_past, kernels_of
from sf2el.model.strategy import Told

if TYPE_CHECKING:
    from sf2el.model.bank import BankRecipe
    from sf2el.model.stage import Stage

OUTDONE = 0.2
"""Share of the best width's weight below which another width goes."""

LEAST_LABELS = 10
"""Labels before which no width goes for want of weight."""

OUTDONE_PAST = 0.1
"""Weight of all its experts below which the vanished space goes."""

LEAST_LABELS_PAST = 20
"""Labels since it vanished before which it does not go for want of weight."""


def may_settle(stage: Stage) -> bool:
    """Whether labels might let something go."""
    return _widths_are_short(stage) or _past_is_costly(stage)


def settle(recipe: BankRecipe, stage: Stage) -> Told:
    """Let go of what labels have spoken against; return what there is to tell."""
    return _settle_widths(recipe, stage) + _settle_past(recipe, stage)


def _widths_are_short(stage: Stage) -> bool:
    """Whether the first space has several widths, and few radial functions for each."""
    kernels = kernels_of(stage.current)
    if len(kernels) < 2 or stage.past is not None or stage.upcoming is not None:
        return False
    return bool(kernels[0].settings.size < FEW_BASIS)


def _settle_widths(recipe: BankRecipe, stage: Stage) -> Told:
    kernels = kernels_of(stage.current)
    if not _widths_are_short(stage) or kernels[0].labels < LEAST_LABELS:
        return []
    weight = recipe.weights_of(stage, stage.current)
    least = OUTDONE * max(weight[seat.name] for seat in kernels)
    gone = [seat for seat in kernels if weight[seat.name] < least]
    if not gone:
        return []
    recipe.keep(stage, stage.current, [seat for seat in stage.current.seats if seat not in gone])
    return [Happened(events.EXPERTS, len(stage.current.seats), 0)]


def _past_is_costly(stage: Stage) -> bool:
    """Whether the current space has few radial functions or none, beside one that has vanished."""
    if not stage.recovers or stage.past is None or stage.upcoming is not None:
        return False
    kernels = kernels_of(stage.current)
    return not kernels or bool(kernels[0].settings.size < AMPLE_BASIS)


def _settle_past(recipe: BankRecipe, stage: Stage) -> Told:
    """Let a vanished space go that is hardly followed any more; experts of the current one take its bytes."""
    if not _past_is_costly(stage) or stage.weights.rounds < LEAST_LABELS_PAST:
        return []
    assert stage.past is not None
    if sum(recipe.weights_of(stage, stage.past).values()) >= OUTDONE_PAST:
        return []
    drop_past(recipe, stage)
    return [Happened(events.OUTDONE), *recipe.replenished(stage)]
