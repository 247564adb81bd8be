"""On PYTHONPATH, gives Python the compiled core that SF2EL_NATIVE names, in place of the installed one."""

import importlib.util
import os
import sys


class _Other:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "sf2el.core._native":
            return None
        return importlib.util.spec_from_file_location(name, os.environ["SF2EL_NATIVE"])


if os.environ.get("SF2EL_NATIVE"):
    sys.meta_path.insert(0, _Other())
