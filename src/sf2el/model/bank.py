"""How a bank furnishes its spaces, and whom it follows as features come and go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sf2el import events
from sf2el.events import Happened
from sf2el.experts.entries import (
    BANK,
    CONSTANT,
    EVEN,
    LEAST_CONSTANT,
    LINEAR,
    LINEAR_SCALE,
    MANY_FEATURES,
    MOST_TIES,
    NUMBERS,
    PAPER,
    SPARE,
    TIE_NOISE,
    WIDEST,
    Entry,
    entry_of,
)
from sf2el.experts.even import beside_linear, even_of, pays_evenness, weigh
from sf2el.experts.posterior import LogisticSettings, PosteriorSettings, Task
from sf2el.experts.seats import LogisticSeat, PaperSeat, PosteriorSeat
from sf2el.experts.teaching import taught
from sf2el.experts.white import turn, white_of, whiten
from sf2el.inputs.rows import Names
from sf2el.maps.joint_map import LARGEST_SCALED, JointMap
from sf2el.memory.bank_sizes import BankBudget
from sf2el.memory.giving_way import kernels_of, linear_of
from sf2el.memory.plan import Shape
from sf2el.memory.settling import may_settle, settle
from sf2el.mixing.weights import BankWeights, class_log_odds, normalised, recovered_share, shared
from sf2el.model.space import Space
from sf2el.model.strategy import Told
from sf2el.paper.learner import learner_seed
from sf2el.paper.settings import (
    LEAST_BUFFER,
    LearnerSettings,
    check_choice,
    check_flag,
    check_range,
    check_whole,
)

if TYPE_CHECKING:
    from sf2el.model.stage import Stage

Floats = npt.NDArray[np.float64]

WIDEST_RELATED = 128
"""Features up to which a space keeps their covariance."""

WIDEST_POSTERIOR = 4096
"""Features up to which a covariance of coefficients is thought of: a third of a hundred mebibytes."""

LIGHT_STEP = 0.1
STEADY = 2.0
"""Step of the expert without a covariance, and the most that it may be times the features: with |x|^2 near
their number a step of 8 / |x|^2 would overshoot the steepest slope of the logistic loss."""

UNDECIDED = 0.1
"""Share of the best width's weight from which a second one goes on with it when features change."""

MANY_LABELS = 50
"""Labels after which a width that went is gone for good, unless there are bytes for all."""

ANEW = 0.02
"""Weight of an expert that begins anew beside others that have learned."""

WORTH = 0.95
"""Share of what each kind of expert was worth before a swap that goes on; the rest is the bank's base."""


@dataclass(frozen=True, kw_only=True)
class BankRecipe(BankBudget):
    """The bank of experts, the joint map and the mixture."""

    raw_maps = True

    task: Literal["classes", "regression_squared", "regression_absolute"]
    forget: float
    seed: int
    backend: str | None
    scaled: bool = True
    related: bool = True
    precision: str = "float32"

    def check(self) -> None:
        """Raise ValueError unless every parameter is in its range."""
        check_choice("task", self.task, ("classes", "regression_squared", "regression_absolute"))
        check_choice("precision", self.precision, ("float32", "float64"))
        for name in ("scaled", "related"):
            check_flag(name, getattr(self, name))
        check_range("forget", self.forget, least=0.0)
        if self.forget >= 1.0:
            raise ValueError(f"forget must be below 1, not {self.forget!r}.")
        check_whole("seed", self.seed, 0, (1 << 64) - 1)

    def size(self) -> str:
        """Return nothing: the budget is the size."""
        return ""

    def learner_settings(self, space: Space) -> LearnerSettings:
        """Return the settings of the first-order learner of a space."""
        return PAPER

    @property
    def scaling(self) -> str:
        """The precision of what is kept to scale features by: that of all else."""
        return self.precision

    def new_space(
        self,
        names: Names,
        *,
        dim: int | None = None,
        born: int | None = None,
        related: bool | None = None,
        scaling: str | None = None,
    ) -> Space:
        """Return a space without experts; its features' covariance is kept unless there are very many."""
        wide = (len(names) if dim is None else dim) > WIDEST_RELATED
        related = not wide if related is None else related
        return super().new_space(names, dim=dim, born=born, related=related, scaling=scaling)

    def risk_task(self, outputs: int) -> str:
        """Return the task by which the experts' scores are judged, so that all kinds compare."""
        return _task(self.task, outputs)

    # -- experts

    def furnish(self, stage: Stage, space: Space, index: int) -> None:
        """Give a space its experts: all of the bank to begin with, later those that the last space kept."""
        before = next((other for other in stage.spaces() if other is not space and other.seats), None)
        entries = list(BANK)
        if before is not None:
            # A light expert had no room for its covariance; this space may have.
            kinds = self._leading(stage, before)
            entries = list(dict.fromkeys(LINEAR if kind is SPARE else kind for kind in kinds))
        if space.dim > WIDEST_POSTERIOR:
            entries = [SPARE]
        if stage.outputs > 1 or self.task != "classes":
            entries = [entry for entry in entries if not entry.paper]  # it tells two classes apart
        seats = [self.new_seat(entry, space, stage.outputs, index=index) for entry in entries]
        if before is not None and self.task == "classes":
            for seat in seats:
                seat.start_from(class_log_odds(stage.counts, stage.outputs))
        if before is None and self.task == "classes" and LINEAR in entries and pays_evenness(space):
            even = self.new_seat(LINEAR, space, stage.outputs, index=index, view=EVEN)
            seats = beside_linear(space, seats, even)
        space.task = self.risk_task(stage.outputs)
        space.seat(seats)

    def _leading(self, stage: Stage, space: Space) -> list[Entry]:
        """Return the kinds of a space's experts, of radial ones only that which is followed most."""
        behind = self.kernels_by_weight(stage, space)[1:]
        return [entry_of(seat) for seat in space.seats if seat not in behind]

    def new_seat(
        self, entry: Entry, space: Space, outputs: int, *, index: int = 0, view: str = ""
    ) -> PosteriorSeat | LogisticSeat | PaperSeat:
        """Return an expert of the bank for a space, which it sees as it is, or ``WHITE`` or ``EVEN``."""
        task = _task(self.task, outputs)
        if entry.paper:
            shape = Shape(PAPER, self.precision, LEAST_BUFFER)  # type: ignore[arg-type]
            return PaperSeat(space.dim, shape, learner_seed(self.seed, index), self.backend, entry.name)
        if entry is SPARE:
            step = min(LIGHT_STEP, STEADY / space.dim)
            light = LogisticSettings(step=step, scale=space.divisor, outputs=outputs, task=task)
            return LogisticSeat(entry.name, light, space.dim, self.backend)
        part = 1.0 if self.task == "classes" else NUMBERS
        settings = PosteriorSettings(
            size=1 if entry.gamma else 0,
            gamma=entry.gamma,
            linear_scale=LINEAR_SCALE,
            rbf_scale=part * entry.scale,
            bias=max(CONSTANT / space.dim, LEAST_CONSTANT),
            centred=entry.centred,
            tie_noise=part * TIE_NOISE if entry.ties else 0.0,
            most_ties=MOST_TIES,
            outputs=outputs,
            task=task,
            forget=self.forget,
            slopes=not entry.gamma or space.dim < MANY_FEATURES,
            matched=bool(entry.gamma) and self.task == "classes",
        )
        limit = LARGEST_SCALED / space.divisor if view else 0.0
        return PosteriorSeat(
            view + entry.name, settings, space.dim, self.precision, self.backend, limit, view == EVEN
        )

    def grow(self, stage: Stage, outputs: int) -> None:
        """There is a class more."""
        for space in stage.spaces():
            self.keep(stage, space, [seat for seat in space.seats if not entry_of(seat).paper])
        for space in stage.spaces():
            space.task = self.risk_task(outputs)
            for seat in space.seats:
                seat.grown(outputs)  # type: ignore[attr-defined]
            if space.seats:
                space.seat(space.seats)
        stage.outputs = outputs
        stage.weights = stage.weights.grown(outputs)
        stage.arrange()

    # -- weights

    def new_weights(self, stage: Stage, trust: float | None = None) -> BankWeights:
        """Return the priors of the bank; recovered experts have this share of them, or one by the overlap."""
        own = shared([entry_of(seat).prior for seat in stage.current.seats], stage.current.seats)
        if stage.past is None or not stage.recovers:
            return self.weights_from(stage, own)
        past = shared([entry_of(seat).base for seat in stage.past.seats], stage.past.seats)
        share = recovered_share(stage.psi.rows, stage.doubt) if trust is None else trust
        return self.weights_from(stage, np.concatenate([share * past, (1.0 - share) * own]))

    def weights_from(self, stage: Stage, prior: Floats) -> BankWeights:
        """Return a mixture that begins with these weights."""
        return BankWeights(np.asarray(prior), self.task, stage.outputs, self.backend)

    def opened(self, stage: Stage) -> Told:
        """Of radial experts the best goes on, and of each kind a second one if labels have not decided.

        What recovered features tell is another matter: there the second may be the better. The new space
        begins with the like of the best.
        """
        told: Told = []
        kernels = self.kernels_by_weight(stage, stage.current)
        weight = self.weights_of(stage, stage.current)
        gone: list[Any] = []
        if len(kernels) > 1:
            least = UNDECIDED * weight[kernels[0].name]
            gone = [seat for seat in kernels[1:] if seat is not kernels[1] or weight[seat.name] < least]
        least = UNDECIDED * weight[linear_of(stage.current).name]
        gone += [seat for seat in even_of(stage.current) if weight[seat.name] < least]
        if gone:
            self.keep(stage, stage.current, [seat for seat in stage.current.seats if seat not in gone])
            told.append(Happened(events.EXPERTS, len(stage.current.seats), 0))
        if stage.upcoming is not None and not stage.upcoming.seats:
            self.furnish(stage, stage.upcoming, stage.index + 1)
        return told

    def taught(
        self, space: Space, outputs: Floats, y: Floats, weights: Floats | None, told: list[int]
    ) -> tuple[Floats, Any]:
        """Where a row has no label, what the current space's experts think it is."""
        return taught(space, outputs, y, weights, told if self.task == "classes" else None)

    def replenished(self, stage: Stage) -> Told:
        """Widths that left for want of bytes begin anew once no other space is beside the current one.

        That is where bytes are free, or where few labels had told which width is best.
        """
        if not self._pays(stage):
            return []
        kernels = kernels_of(stage.current)
        there = {entry_of(seat).name for seat in kernels}
        missing = [entry for entry in BANK if entry.gamma and entry.name not in there]
        young = _young(kernels) and stage.weights.rounds < MANY_LABELS
        trust = float(stage.weights.weights[: -len(stage.current.seats)].sum())
        told = self._joined(stage, missing, [entry.prior if young else ANEW for entry in missing])
        if told and not stage.weights.rounds:
            stage.weights = self.new_weights(stage, trust)  # all begin: none is there longer than others
        return told

    def _pays(self, stage: Stage) -> bool:
        """Whether all widths pay: few labels have told which is best, or there are bytes for all."""
        return _young(kernels_of(stage.current)) or self.ample(stage)

    def regained(self, stage: Stage) -> Told:
        """Experts begin anew where others of their kind had to leave, and a map where there is none."""
        if stage.upcoming is not None and stage.overlap is None:
            stage.overlap = self.new_map(stage.upcoming, stage.current)
        missing = [entry for entry in BANK if entry.gamma or entry is LINEAR]
        if stage.past is not None or stage.upcoming is not None or not self._pays(stage):
            missing = [LINEAR] if kernels_of(stage.current) else [LINEAR, WIDEST]
        there = {entry_of(seat).name for seat in stage.current.seats}
        missing = [entry for entry in missing if entry.name not in there]
        # They are followed once labels speak for them: more bytes alone change no prediction.
        told = self._joined(stage, missing, [0.0] * len(missing))
        opened = stage.upcoming
        if opened is not None and opened is not stage.past and opened.dim <= WIDEST_POSTERIOR:
            kinds = dict.fromkeys(self._leading(stage, stage.current))
            there = {entry_of(seat).name for seat in opened.seats}
            missing = [entry for entry in kinds if entry is not SPARE and entry.name not in there]
            odds = class_log_odds(stage.counts, stage.outputs)
            opened.seat(opened.seats + self._new_seats(stage, opened, missing, stage.index + 1, odds))
        return told

    def _joined(self, stage: Stage, entries: list[Entry], weights: list[float]) -> Told:
        """Let experts join the current space with these weights, from the constant of its linear one."""
        space = stage.current
        if not entries or space.dim > WIDEST_POSTERIOR:
            return []
        stage.weights = stage.weights.joined_by(weights)
        odds = linear_of(space).constant
        space.seat(space.seats + self._new_seats(stage, space, entries, stage.index, odds))
        stage.arrange()
        return [Happened(events.EXPERTS, len(space.seats), len(stage.names()) - len(space.seats))]

    def _new_seats(
        self, stage: Stage, space: Space, entries: list[Entry], index: int, odds: list[float]
    ) -> list[Any]:
        seats = [self.new_seat(entry, space, stage.outputs, index=index) for entry in entries]
        if self.task == "classes":
            for seat in seats:
                seat.start_from(odds)
        return seats

    def keep(self, stage: Stage, space: Space, seats: list[Any]) -> None:
        """Leave only these experts in a space; the others' weight goes to one of their kind, or to all."""
        players = (
            stage.past.seats if stage.past is not None and stage.recovers else []
        ) + stage.current.seats
        plays = space is stage.current or (space is stage.past and stage.recovers)
        gone = [seat for seat in space.seats if seat not in seats]
        if plays:
            left = [i for i, seat in enumerate(players) if seat not in gone]
            kinds = {entry_of(players[i]).name: i for i in reversed(left) if players[i] in seats}
            heirs = {
                i: kinds[entry_of(seat).name]
                for i, seat in enumerate(players)
                if seat in gone and entry_of(seat).name in kinds
            }
            stage.weights = stage.weights.only(left, heirs)
        space.seat(seats)
        if space.moments is not None and not even_of(space):
            space.keep_fourths(False)
        stage.arrange()

    def swapped(self, stage: Stage) -> None:
        """The recovered experts are followed first, and shares of what each kind was worth before."""
        before = stage.weights.weights
        whiten(self, stage)
        if stage.past is None or not stage.recovers:
            stage.weights = self.new_weights(stage)
            return
        weights = normalised(before[-len(stage.past.seats) :])
        worth: dict[str, float] = {}
        for seat, weight in zip(stage.past.seats, weights, strict=True):
            worth[entry_of(seat).name] = worth.get(entry_of(seat).name, 0.0) + float(weight)
        kinds = [worth.get(entry_of(seat).name, 0.0) + 1e-12 for seat in stage.current.seats]
        parts, trust = [], recovered_share(stage.psi.rows, stage.doubt)
        for space, share, own in (
            (stage.past, trust, normalised(weights + 1e-12)),
            (stage.current, 1.0 - trust, shared(kinds, stage.current.seats)),
        ):
            base = shared([entry_of(seat).base for seat in space.seats], space.seats)
            parts.append(share * (WORTH * own + (1.0 - WORTH) * base))
        stage.weights = self.weights_from(stage, np.concatenate(parts))

    def refitted(self, stage: Stage) -> Told:
        """Go by what the space has shown by now: how experts see it white, and what labels speak against."""
        turn(stage, self.backend)
        weigh(stage)
        return settle(self, stage)

    def watches(self, stage: Stage) -> bool:
        """Whether something rests on what the space has shown: an expert's view, or who stays."""
        turned = white_of(stage.current) + even_of(stage.current)
        return may_settle(stage) or (stage.current.moments is not None and bool(turned))

    def reverted(self, stage: Stage) -> None:
        """The old experts are alone again, with the weights they had among themselves if they did play."""
        assert stage.upcoming is not None
        count, before = len(stage.current.seats), stage.weights.weights
        if len(before) == count + len(stage.upcoming.seats):
            stage.weights = self.weights_from(stage, normalised(before[:count]))
        else:
            stage.weights = self.new_weights(stage)

    def new_map(self, new: Space, old: Space, new_dim: int | None = None) -> JointMap:
        """Return the map from what is known of both spaces together."""
        return JointMap(new_dim or new.dim, old.dim, old.divisor, self.precision, self.backend)


def _young(kernels: list[Any]) -> bool:
    return all(seat.labels < MANY_LABELS for seat in kernels)


def _task(task: str, outputs: int) -> Task:
    if task == "classes":
        return "classes" if outputs > 1 else "binary"
    return task  # type: ignore[return-value]
