"""SF2EL as a river or a scikit-learn estimator: optional, and never imported by the rest of the package."""
