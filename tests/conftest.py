from __future__ import annotations

from hypothesis import Phase, settings

# The same examples every time, for the same code and the same selection of tests: Hypothesis also draws on
# the constants it finds in the modules that are loaded.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
settings.load_profile("repeatable")
