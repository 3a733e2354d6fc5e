"""What the tests of agents share: the real local model."""

import importlib.util
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from ripstop.models.model_files import carried_model


@pytest.fixture(scope="session")
def model_file():
    """The carried model. The one place that decides whether the tests with the real model can run."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: pip install 'ripstop[local]'")
    found = carried_model()
    if found is None:
        pytest.skip("the local model is not installed: ripstop model install")
    return found


@pytest.fixture(scope="session")
def llama_server(model_file) -> Iterator[SimpleNamespace]:
    """A real llama.cpp HTTP server on loopback, with the real model and a key."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file)
    params.n_ctx = 2048
    params.verbosity = -1
    params.warmup = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.api_keys = ["key-of-the-test-server"]
    params.sampling.temp = 0.0  # always the likeliest word, so that a test sees the same words every time
    server = xllamacpp.Server(params)
    yield SimpleNamespace(url=f"{server.listening_address}/v1", key="key-of-the-test-server")
    del server
