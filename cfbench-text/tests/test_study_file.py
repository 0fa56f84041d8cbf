"""The example of the study and the replication are one configuration."""

from pathlib import Path

import pytest
import yaml

EXAMPLE = Path(__file__).parents[2] / "examples" / "text-study.yaml"


def test_the_example_is_the_configuration_of_the_replication():
    import cfbench_text.replications

    if not EXAMPLE.is_file():
        pytest.skip("the examples are in the repository only")
    packaged = Path(cfbench_text.replications.__file__).parent / "statement_factuality.yaml"
    example, replication = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (EXAMPLE, packaged))
    assert example == replication
    assert len(example["data"]) == 5 and len(example["generators"]) == 8  # six and two controls
