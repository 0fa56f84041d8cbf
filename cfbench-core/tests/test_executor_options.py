"""Executors in a configuration: their options, what is wrong with them, and what must not be imported for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy_runs import configuration

from cfbench_core.api import prepare
from cfbench_core.config import fields_of
from cfbench_core.errors import UserError
from cfbench_core.executors.dask import DaskConfig, DaskExecutor, require_distributed
from cfbench_core.registry import Registry
from cfbench_core.suites import Experiment, Limits
from cfbench_core.used_components import trust_notes


def planned(registry: Registry, named: Any, **options: Any) -> Any:
    return prepare(configuration(executor=named), registry=registry, **options)


def test_an_executor_has_options_like_every_component(registry: Registry) -> None:
    found = planned(registry, {"name": "dask", "address": "tcp://127.0.0.1:8786", "connect_timeout": 5})
    assert found.config.executor.options == DaskConfig(address="tcp://127.0.0.1:8786", connect_timeout=5.0)
    assert found.document["executor"]["address"] == "tcp://127.0.0.1:8786"
    again = prepare(found.document, registry=registry)
    assert again.config == found.config


def test_an_executor_without_options_is_written_as_its_name(registry: Registry) -> None:
    assert planned(registry, "inline").document["executor"] == "inline"
    document = configuration()
    del document["executor"]
    assert prepare(document, registry=registry).document["executor"] == "process"
    (shown,) = [field for field in fields_of(Experiment) if field.name == "executor"]
    assert (shown.type, shown.default) == ("executor", "process")


@pytest.mark.parametrize(
    ("executor", "error"),
    [
        ({"name": "process", "address": "x"}, "executor.address: unknown key. There is nothing to set"),
        ({"name": "process", "workers": 2}, "executor.workers: unknown key. 'workers' stands in the configuration itself"),
        ({"name": "dask", "adress": "x"}, "executor.adress: unknown key. Did you mean 'address'?"),
        ({"name": "dask", "address": "tcp://a:1", "workers": 2}, "workers cannot stand next to address"),
        ({"name": "dask", "cluster": "os.system", "workers": 2}, "a cluster of a package of Dask"),
        ({"name": "dask", "cluster": "dask_x.y", "workers": 2}, "a cluster of a package of Dask"),
        ({"name": "dask", "cluster": "subprocess.PopenCluster", "workers": 2}, "a cluster of a package of Dask"),
        ({"name": "dask", "cluster": "dask_jobqueue.SLURMCluster"}, "needs workers (their number)"),
        ({"name": "dask", "workers": 2, "adaptive": {"maximum": 3}}, "give either workers or adaptive"),
        ({"name": "dask", "resources": {"model": 1}}, "resources.model: must be a mapping of names to numbers"),
        ({"name": "dask", "resources": {"cuda": {"GPU": -1}}}, "names to numbers above 0"),
        ({"name": "dask", "resources": {"cud": {"GPU": 1}}}, "no tasks of this kind. Did you mean 'cuda'?"),
        ({"name": "dask", "adaptive": {"max": 3}}, "adaptive.max: unknown key"),
        ({"name": "dask", "adaptive": {"minimum": 5, "maximum": 3}}, "adaptive: minimum is above maximum"),
        ({"name": "dask", "adaptive": {"maximum": "3"}}, "adaptive.maximum: must be a whole number, got '3'"),
        ({"name": "dask", "connect_timeout": 0}, "must be a number > 0"),
        ({"import": "toy_suite:Digits"}, "'import' cannot name one of the executors"),
        (["inline", "process"], "must be one executor"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_executor_is_one_line(registry: Registry, executor: Any, error: str) -> None:
    with pytest.raises(UserError) as found:
        planned(registry, executor)
    assert len(found.value.lines) == 1
    assert found.value.lines[0].startswith(("configuration: executor", "executor.resources"))
    assert error in found.value.lines[0]


def test_the_call_takes_precedence_over_the_configuration(registry: Registry) -> None:
    own = {"name": "dask", "cluster": "local", "workers": 4}
    assert planned(registry, own, executor="process").config.executor.options is None
    same = planned(registry, own, executor="dask", workers=3).config
    assert (same.executor.options.cluster, same.executor.options.workers, same.workers) == ("local", None, 3)
    with pytest.raises(UserError, match="Did you mean 'dask'"):
        planned(registry, "inline", executor="dusk")


def test_the_reader_of_a_configuration_learns_where_tasks_go(registry: Registry) -> None:
    (note,) = trust_notes(planned(registry, {"name": "dask", "address": "tcp://10.0.0.1:1"}).config)
    assert note.startswith("executor sends tasks to the Dask scheduler at tcp://10.0.0.1:1")
    jobs = {"name": "dask", "cluster": "dask_jobqueue.SLURMCluster", "workers": 2}
    assert trust_notes(planned(registry, jobs).config) == [
        "executor sends jobs to dask_jobqueue.SLURMCluster"
    ]
    assert trust_notes(planned(registry, {"name": "dask", "cluster": "local"}).config) == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ModuleNotFoundError('', name='distributed')", ""),
        ("raise AttributeError('half of it\\nis missing')", " (AttributeError: half of it"),
        (
            "import there_is_no_such_module",
            " (ModuleNotFoundError: No module named 'there_is_no_such_module'",
        ),
    ],
)
def test_without_distributed_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    (tmp_path / "distributed").mkdir()
    (tmp_path / "distributed" / "__init__.py").write_text(source)
    for name in [name for name in sys.modules if name.partition(".")[0] == "distributed"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError) as found:
        DaskExecutor(tmp_path / "store", 1, 1, Limits(), [], False)
    (line,) = found.value.lines
    assert line.startswith(f"executor dask needs distributed{reason}")
    assert line.endswith("pip install 'cfbench-core[dask]'")
    assert not (tmp_path / "store").exists()
    with pytest.raises(UserError):
        require_distributed()


def test_planning_and_listing_do_not_import_distributed(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("suite: none\nexecutor: {name: dask, cluster: local}\n")
    code = (
        "import json, sys\n"
        "from cfbench_core.cli import main\n"
        "main(sys.argv[1:])\n"
        "print(json.dumps([name for name in ('distributed', 'dask', 'tornado') if name in sys.modules]))\n"
    )
    for arguments in (["list"], ["describe", "dask"], ["plan", str(study)]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == "[]", done.stderr
