"""Maps that recover vanished features."""
