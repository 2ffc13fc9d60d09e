"""What an adapter says where its library is not installed."""

import sys
from importlib import import_module

import pytest

from tacit.errors import ConfigError


@pytest.mark.parametrize("library", ["sklearn", "lenskit", "opendp", "mlflow"])
def test_it_says_what_to_install(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"tacit.integrations.{library}", raising=False)
    with pytest.raises(ConfigError, match=rf"pip install 'tacit\[{library}\]'") as caught:
        import_module(f"tacit.integrations.{library}")
    assert isinstance(caught.value, ImportError)
