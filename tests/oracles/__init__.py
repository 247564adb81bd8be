"""The equations of the compiled core, once more and as plainly as NumPy can say them.

Nothing here is shared with the package: dense matrices, solvers and loops, no cleverness.
"""
