"""Every recommender of this distribution passes the conformance kit, with its default options."""

from __future__ import annotations

import numpy as np
import pytest

from cfbench_core.config import Document, decode_options
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_core.reproduction_levels import level_of
from cfbench_core.testing import check_component
from cfbench_recsys.plugin import cfbench_recommenders
from cfbench_recsys.testing.world import split, streams

RECOMMENDERS = [spec.id for spec in cfbench_recommenders()]


@pytest.mark.parametrize("component", RECOMMENDERS)
def test_it_fulfils_the_contract_of_the_suite(component: str) -> None:
    report = check_component(component)
    assert report.passed, str(report)


def test_every_recommender_of_a_paper_states_how_far_it_is_that_of_the_paper() -> None:
    found = installed().components()
    own = [c.spec for c in found if c.distribution == "cfbench-recsys" and c.spec.kind == "recommender"]
    assert any(spec.papers for spec in own)
    assert [spec.id for spec in own if spec.papers and level_of(spec) is None] == []


@pytest.mark.parametrize("name", [id.rpartition("/")[2] for id in RECOMMENDERS])
def test_weights_of_another_model_are_refused(name: str) -> None:
    """NGCF has the embeddings of LightGCN and matrices; without these its scores are those of another model."""
    registry = installed()
    component = registry.find("recsys", "recommender", name)
    options = {"epochs": 1} if component.spec.provides.get("checkpoints") else {}
    model = decode_options(component, Document.of(options, name), registry).create()
    model.fit(split(), streams)
    state = dict(model.state())
    model.load_state(state, split().profiles)
    with pytest.raises(
        UserError, match=f"^{name}: weights: are of another model, with further arrays: W_1"
    ) as caught:
        model.load_state({**state, "W_1": np.eye(2)}, split().profiles)
    assert len(caught.value.lines) == 1
