"""What identification has found, with how well it is known."""

from dataclasses import dataclass

import numpy as np

from kinetree.errors import IdentifiabilityError
from kinetree.identification.base import BaseParameters
from kinetree.model import Model

__all__ = ["Identification"]


@dataclass(frozen=True, eq=False)
class Identification:
    """Base parameters of a mechanism, estimated from measurements.

    Attributes:
        base: which combinations of parameters these are; ``base.labels`` names them.
        values: the estimates, (n,).
        covariance: of their errors, (n, n).
        noise: standard deviation of the measured joint forces about the fit, (nv,) [N, N·m].
        residuals: measured minus fitted joint forces, (..., nv).
        condition: condition number of the least-squares problem with columns of unit length.
            Below 100 the motion is exciting; far above, noise decides.
        parameters: with ``consistent=True`` a value for every single parameter, (len(names),):
            what the data say, and where they are silent, what is nearest to the given model.
    """

    base: BaseParameters
    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residuals: np.ndarray
    condition: float
    parameters: np.ndarray | None = None
    identified_model: Model | None = None

    @property
    def names(self):
        """Names of the estimates: single parameters, or combinations of them."""
        return self.base.labels

    @property
    def standard_deviations(self):
        """Of the estimates, (n,)."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def identifiable(self):
        """For every single parameter of ``base.names``, whether it has a value of its own."""
        return self.base.identifiable

    def __getitem__(self, name):
        """The estimate of a parameter or combination, by name.

        Raises:
            IdentifiabilityError: for a parameter that cannot be told by itself.
        """
        return float(self.values[self.base.index(name)])

    def standard_deviation(self, name):
        """Of one estimate, by name."""
        return float(self.standard_deviations[self.base.index(name)])

    @property
    def model(self):
        """The model with physically possible inertias that fit the data; of ``consistent=True``."""
        if self.identified_model is None:
            raise IdentifiabilityError(
                f"only {len(self.base)} combinations of the {len(self.base.names)} parameters are "
                f"known, which is not a model; identify(..., consistent=True) chooses the possible "
                f"model nearest to the given one"
            )
        return self.identified_model

    def joint_parameter(self, name):
        """Friction or rotor inertia of a joint, such as ``"elbow.viscous"``.

        With ``consistent=True`` it always has a value, otherwise where it can be told by itself.
        """
        if self.parameters is None:
            return self[name]
        if name not in self.base.names:
            self.base.index(name)  # raises
        return float(self.parameters[self.base.names.index(name)])

    def predict(self, q, qd, qdd):
        """Joint forces by the estimates, (..., nv)."""
        return self.base.regressor(q, qd, qdd) @ self.values

    def summary(self) -> str:
        """A table of the estimates, as text."""
        width = max([len("parameter"), *map(len, self.names)])
        lines = [f"{'parameter':<{width}}  {'value':>12}  {'std. dev.':>10}"]
        for name, value, deviation in zip(
            self.names, self.values, self.standard_deviations, strict=True
        ):
            lines.append(f"{name:<{width}}  {value:>12.6g}  {deviation:>10.2g}")
        lines.append(f"condition number {self.condition:.4g}")
        return "\n".join(lines)

    def __repr__(self):
        rows = self.residuals.size
        return (
            f"Identification({self.base.model.name!r}: {len(self.base)} base parameters from "
            f"{rows} joint forces, condition number {self.condition:.3g})"
        )
