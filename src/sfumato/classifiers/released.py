"""A released model: the fitted estimator with its promise, as every other result has it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from sfumato.classifiers.model_file import check_header, described, files_of, packed, unpacked
from sfumato.errors import InputError
from sfumato.privacy.guarantee import Guarantee
from sfumato.results import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Model(Result):
    """A model that was released: `predict` for anybody's rows, coefficients or shapes or rules to look at.

    Attributes
    ----------
    estimator : fitted classifier
        With `predict`, `predict_proba` (where it has one) and `classes_`, as scikit-learn has them.
    mechanism : str
        The estimator by its name in plans.
    warnings : tuple of str
        What a reader must know before using it.
    """

    estimator: Any = field(repr=False)
    mechanism: str
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, estimator: Any, mechanism: str, *, warnings: tuple[str, ...] = ()) -> Self:
        """A fitted `estimator` as a result, by its name in plans (`mechanism`), with `warnings` for the reader."""
        return cls(estimator, mechanism, warnings)

    @property
    def guarantee(self) -> Guarantee:
        """What the release promises."""
        found: Guarantee = self.estimator.guarantee_
        return found

    @property
    def expected_rmse(self) -> None:
        """How well a model will do is not known beforehand."""
        return

    @property
    def target(self) -> str:
        """The column that is predicted."""
        return str(self.estimator.target)

    @property
    def classes_(self) -> NDArray[Any]:
        """The values that are predicted."""
        found: NDArray[Any] = self.estimator.classes_
        return found

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """How it was made; public."""
        header, _ = self._portable
        told = {k: v for k, v in header["settings"].items() if v is not None and k not in ("classes", "target", "epsilon")}
        return told | dict(getattr(self.estimator, "parameters_", {}))

    def predict(self, frame: Any) -> NDArray[Any]:
        """The predicted class of every row of `frame`, which has the columns of the table."""
        found: NDArray[Any] = self.estimator.predict(frame)
        return found

    def predict_proba(self, frame: Any) -> NDArray[Any]:
        """The probability of every class for every row of `frame`."""
        if not hasattr(self.estimator, "predict_proba"):
            raise InputError(f"{self.mechanism} gives no probabilities; use predict, or release another estimator")
        found: NDArray[Any] = self.estimator.predict_proba(frame)
        return found

    def words(self, number: float) -> str:
        """`number` in the unit of the figures, for sentences."""
        from sfumato.classifiers.showing import unit_of

        return f"{number:,.4g} ({unit_of(self.estimator)})"

    # --- the contract of results -----------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Coefficients, shape functions, rules or cells: what the model says, one line each."""
        from sfumato.classifiers.showing import frame_of

        return frame_of(self.estimator)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the coefficients, the most important shape function, the rules or the cells, on `ax` or on a new figure."""
        from sfumato.classifiers.showing import draw

        return draw(self.estimator, ax)

    def report_sections(self) -> Iterator[tuple[str, Any]]:
        """What the report of a release adds: headings, each with a text or a small table."""
        from sfumato.classifiers.showing import sentences

        yield "What the model says", " ".join(sentences(self.estimator))
        yield (
            "How to use it",
            "sfumato predict FOLDER TABLE applies it to a file; in Python, sfumato.load(FOLDER) gives the fitted estimator. "
            "model.json and model.npz are all it needs: no private table, no ledger.",
        )

    def extra_files(self) -> dict[str, bytes]:
        """Files that a release stores beside its figures: the portable model."""
        return files_of(*self._portable)

    @cached_property
    def _portable(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        header, arrays = self.estimator.to_portable()
        return header, arrays

    def to_dict(self) -> dict[str, Any]:
        """The model file as JSON (its arrays in base 64) and what is said about it."""
        header, arrays = self._portable
        data = packed(arrays)
        return {
            **super().to_dict(),
            "mechanism": self.mechanism,
            "target": self.target,
            "classes": header["classes"],
            "warnings": list(self.warnings),
            "model": described(header, arrays, data),
            "arrays_npz": base64.b64encode(data).decode(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The model that `to_dict` wrote down as `data`."""
        from sfumato.classifiers.portable import from_portable

        header = data.get("model")
        check_header(header, "the stored release")
        assert isinstance(header, dict)
        try:
            raw = base64.b64decode(str(data.get("arrays_npz")), validate=True)
        except binascii.Error:
            raise InputError("the stored release does not hold the arrays of its model") from None
        estimator = from_portable(header, unpacked(raw, header["arrays"], "the stored release"), what="the stored release")
        return cls(estimator, str(data["mechanism"]), tuple(data.get("warnings", ())))
