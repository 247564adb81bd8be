"""The paper's learner in the compiled core, made from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sf2el.core import native, variant

if TYPE_CHECKING:
    from sf2el.paper.settings import LearnerSettings


def build_learner(
    settings: LearnerSettings, dim: int, capacity: int, seed: int, precision: str = "float64"
) -> Any:
    """Build a compiled learner."""
    s = settings
    return native().learner(
        dim=dim,
        capacity=capacity,
        seed=seed,
        kernel=[kernel.parameters() for kernel in s.kernel.terms()],
        loss=s.loss,
        graph_width=float(s.graph_width),
        ridge=float(s.ridge),
        smoothness=float(s.smoothness),
        step=float(s.step),
        label_rate=0.0 if s.label_rate is None else float(s.label_rate),
        radius=float(s.radius),
        jitter=float(s.jitter),
        manifold=s.manifold,
        equations=s.equations,
        cap=s.cap,
        projection=s.projection,
        pursuit_steps=s.pursuit_steps,
        keep_gram=s.keep_gram,
        on_skip=s.on_skip,
        sampling=s.sampling,
        precision=precision,
        variant=variant(),
    )
