"""Prequential evaluation: every row is predicted first, and learned then."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from sf2el.evaluate.rounds import Learning, ModelsWords, steps_of
from sf2el.evaluate.scores import check_names
from sf2el.evaluate.tally import Evaluation, Tally, feature_periods
from sf2el.inputs.parameters import check_range, check_whole, plain_number


def prequential(
    model: Any,
    stream: Iterable[Any],
    *,
    metrics: Sequence[str] | None = None,
    window: int = 500,
    delay: int = 0,
    mask: Iterable[bool] | Callable[[int], bool] | None = None,
    label_rate: float | None = None,
    seed: int = 0,
    periods: Callable[[int, dict[Any, Any]], Hashable] | str | None = None,
    unlabelled: bool | None = None,
) -> Evaluation:
    """Predict every row, score the prediction, then learn the row; return all metrics.

    Anything with ``predict_one`` and ``learn_one`` can be evaluated, river's models included. A model whose
    ``learn_one`` takes no label None is not called on unlabelled rows, and one whose ``learn_one`` has no
    ``late`` learns a delayed label as an ordinary row when it arrives. A model that answers True and False,
    as river's binary ones do, gets labels of 1 and -1 or 1 and 0 as True and False.

    Time O(1) a round beside the model's own. Memory O(window + delay), whatever the stream's length: AUCs
    come from histograms of 2000 bins, and when there are more than 1000 windows each two become one.

    Parameters
    ----------
    model
        It is changed: it learns the stream.
    stream
        ``(x, y)`` pairs, y None where the label is not known; or rounds of :func:`sf2el.streams.evolve`,
        which say themselves which labels are revealed, and when.
    metrics
        Names to report, by default all that apply: accuracy, balanced_accuracy, kappa, auc and log_loss, or
        mae, rmse and r2 where numbers are predicted, which the first known label decides. A prediction None
        is an error. The AUC of more than two labels is the mean over labels of one against the rest; a
        probability below 1e-15 counts as 1e-15. Not in the log loss are rounds in which the model said
        nothing, and those with a label that it was not told of before and does not name: the first row of a
        new label, which it could not know, would outweigh hundreds of others.
    window
        Rounds of a window.
    delay
        Rounds after which a label arrives: the row is learned unlabelled first.
    mask
        Which labels are revealed at all: one entry a round, or a function of the round.
    label_rate
        Instead of a mask: the probability that a label is revealed, drawn by ``seed``.
    seed
        Of ``label_rate``.
    periods
        A function of round and row whose value labels the period; ``"features"`` makes a period of every run
        of rounds with the same features, which is the default for rounds. At most 1000 are kept apart.
    unlabelled
        Whether the model learns from rows without label; None finds out from ``learn_one``, of a river
        pipeline from that of each supervised step.

    Examples
    --------
    >>> from sf2el import SF2EL
    >>> stream = [({"a": t % 3, "b": t % 2}, "even" if t % 2 == 0 else "odd") for t in range(400)]
    >>> found = prequential(SF2EL(budget="8KiB"), stream, label_rate=0.2, window=100)
    >>> found.labelled, round(found.windows[-1].metrics["accuracy"], 2)
    (73, 1.0)
    """
    window, delay, label_rate, seed = map(plain_number, (window, delay, label_rate, seed))
    check_whole("window", window, 1, 1 << 40)
    check_whole("delay", delay, 0, 1 << 40)
    if label_rate is not None:
        check_range("label_rate", label_rate, least=0.0)
        if mask is not None or label_rate > 1.0:
            raise ValueError("Give either a mask or a label_rate from 0 to 1.")
    if periods is not None and periods != "features" and not callable(periods):
        raise ValueError(f"periods must be a function or 'features', not {periods!r}.")
    if metrics is not None:
        check_names(metrics)
    learning, words = Learning(model, unlabelled), ModelsWords()
    tally: Tally | None = None
    for step in steps_of(stream, delay=delay, mask=mask, label_rate=label_rate, seed=seed):
        prediction = model.predict_one(step.x)
        step = words.of(step, prediction)
        if tally is None:
            by_features = periods == "features" or (periods is None and step.from_round)
            label = periods if callable(periods) else feature_periods() if by_features else None
            tally = Tally(model, metrics=metrics, window=window, period=label)
        tally.add(step, prediction)
        learning.learn(step)
    if tally is None:
        raise ValueError("The stream has no rounds; pass at least one.")
    return tally.evaluation(learning.told)
