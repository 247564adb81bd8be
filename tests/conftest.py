from __future__ import annotations

import pytest
from hypothesis import Phase, settings

from sf2el.core import backend, native_available

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


@pytest.fixture(scope="session", params=["native", "numpy"])
def be(request):
    """Each backend in turn: one test body for both."""
    if request.param == "native" and not native_available():
        pytest.skip("the compiled core was not built")
    return backend(request.param)
