"""The default: a bank of experts a space under one mixture, the paper's learner among them.

Which experts there are is one list, ``entries.BANK``. What each is worth is found by the mixture, starting
from the weights of that list; how large they are is the budget's.
"""

from __future__ import annotations

from sf2el.bank.entries import BANK, EVEN, LINEAR, SPARE, WHITE, Entry, entry_of
from sf2el.bank.recipe import BankRecipe

__all__ = ["BANK", "EVEN", "LINEAR", "SPARE", "WHITE", "BankRecipe", "Entry", "entry_of"]
