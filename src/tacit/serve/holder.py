"""The model that a server uses, and its replacement when the file changes.

A request takes the model that is current when it starts, and keeps it to its end, so a reload drops
nothing. A file that is not a valid model is refused, and the one before stays.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import ModelFileError
from tacit.models import Model, load
from tacit.serve.metrics import Metrics
from tacit.serve.site import model_module, page_files, tag_of

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".tacit": "application/octet-stream",
}


@dataclass(frozen=True)
class File:
    """A file as it is sent."""

    content: bytes
    type: str
    tag: str


@dataclass(frozen=True, eq=False)
class Current:
    """A model, and the files of its page."""

    model: Model
    files: dict[str, File]

    @classmethod
    def read(cls, path: Path) -> "Current":
        """Read a model file and make its page; unsound files are a ModelFileError."""
        model = load(path)
        _compile(model)
        content = path.read_bytes()
        parts = page_files() | {"model.js": model_module(content), "model.tacit": content}
        files = {
            name: File(part, _TYPES[Path(name).suffix], tag_of(part))
            for name, part in parts.items()
        }
        return cls(model, files)


class Holder:
    """Holds the current model, and looks for a newer one."""

    def __init__(self, path: Path, metrics: Metrics) -> None:
        self._path = path
        self._metrics = metrics
        self._seen = _stamp(path)
        self.current = Current.read(path)

    async def watch(self, every: float = 1.0) -> None:
        """Look at the file again and again; once it is another one, read it and take it over."""
        while True:
            await asyncio.sleep(every)
            await self.look()

    async def look(self) -> None:
        """Take over the file if it has changed; a file that is missing or unsound is refused."""
        stamp = _stamp(self._path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self.current = await asyncio.to_thread(Current.read, self._path)
        except (ModelFileError, OSError):
            self._metrics.reloads["refused"] += 1
        else:
            self._metrics.reloads["done"] += 1


def _compile(model: Model) -> None:
    """Answer a made-up person, so that no caller waits until loops are compiled."""
    item = model.catalogue.ids[0]
    own = [item] if model.implicit else {item: model.rating_range[1]}
    model.recommend(own, 1)
    model.predict(own)
    if model.knows_std:
        model.predict(own, return_std=True)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced or written; None if there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns
