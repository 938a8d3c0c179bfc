"""Training with differential privacy, through Opacus: per record or per user."""

from importlib.util import find_spec

from recollect.errors import MissingDependency

if find_spec("opacus") is None:
    raise MissingDependency(
        "Training with differential privacy needs Opacus.", do="pip install 'recollect[private]'", code="opacus_missing"
    )
