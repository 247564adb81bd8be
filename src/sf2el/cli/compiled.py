"""Which variant of the compiled core runs here."""

from __future__ import annotations


def variant_in_use() -> str:
    """Return ``base`` or ``wide``; ImportError or ValueError where none can be used."""
    from sf2el.core import native, variant

    core, chosen = native(), variant()
    if chosen not in ("auto", "base", "wide"):
        raise ValueError(f"SF2EL_VARIANT must be auto, base or wide, not {chosen!r}.")
    usable = bool(core.wide_usable())
    if chosen == "wide" and not usable:
        raise ValueError(
            "This processor or build has no wide variant of the core; leave SF2EL_VARIANT unset."
        )
    if chosen == "auto":
        return "wide" if usable else "base"
    return chosen
