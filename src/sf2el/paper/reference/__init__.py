r"""The paper's Algorithms 1 and 2 in plain NumPy, to be read beside the paper.

Nothing here is fast, and nothing needs a compiler. The compiled core is tested against these files. Both keep
the same rows of a stream, since they draw the same random numbers; sums are added in another order, so that
results agree to rounding and not to the bit. The core also clips numbers at 1e100, which is left out here.

==================================  =====================================================================
in the paper                        here
==================================  =====================================================================
:math:`f, \beta_s, K`               ``ReferenceLearner``: ``predict``, ``beta``, ``settings.kernel``
:math:`\mathcal{B}, b`              ``rows`` (what the buffer holds), ``buffer_size``
:math:`\lambda_1, \lambda_2`        ``settings.ridge``, ``settings.smoothness``
:math:`\tau_t`                      ``tau``: ``settings.step`` over the square root of the round
:math:`T / l = 1 / p_l`             ``c``: given by ``settings.label_rate``, or rounds over labels
:math:`w_{st}`                      ``w``: :math:`e^{-g \|x_s - x_t\|^2}`, where g is ``settings.graph_width``
:math:`(t - 1) / b`                 ``u``: rows seen for each row kept
:math:`\psi`                        ``ReferenceMap``
:math:`\alpha_i, \eta, J`           ``ReferenceHedge``: ``weights``, ``eta``, what ``update`` returns
:math:`S_1, S_2, B, T_1, T_2`       ``old``, ``new``, ``overlap`` and the lengths in ``run_two_spaces``
==================================  =====================================================================

Run ``python -m sf2el.paper.reference`` for a small example.

References
----------
Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
"""

from sf2el.paper.reference.hedge import ReferenceHedge
from sf2el.paper.reference.learner import ReferenceLearner
from sf2el.paper.reference.model import ReferenceSF2EL, Round, run_two_spaces
from sf2el.paper.reference.recovery import ReferenceMap

__all__ = ["ReferenceHedge", "ReferenceLearner", "ReferenceMap", "ReferenceSF2EL", "Round", "run_two_spaces"]
