"""Counts of what a server did, in the text form that Prometheus reads. Counts only.

A label is a route that is known beforehand, a status or a word of ours; nothing that a caller sends
becomes one.
"""

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass
class Metrics:
    """Counts since the server started."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    within: Counter[float] = field(default_factory=Counter)
    seconds: float = 0.0
    people: int = 0
    reloads: Counter[str] = field(default_factory=Counter)
    active: int = 0
    _lock: Lock = field(default_factory=Lock)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        with self._lock:
            self.requests[route, status] += 1
            self.seconds += seconds
            for edge in _EDGES:
                self.within[edge] += seconds <= edge

    def answered(self, people: int) -> None:
        """Count people who were answered."""
        with self._lock:
            self.people += people

    def text(self, kind: str, items: int) -> str:
        """Return all counts, and the kind of the model."""
        with self._lock:
            total = self.requests.total()
            lines = [
                *_head("tacit_requests_total", "counter", "Requests by route and status."),
                *(
                    f'tacit_requests_total{{route="{route}",status="{status}"}} {count}'
                    for (route, status), count in sorted(self.requests.items())
                ),
                *_head("tacit_request_seconds", "histogram", "How long requests took."),
                *(
                    f'tacit_request_seconds_bucket{{le="{edge:g}"}} {self.within[edge]}'
                    for edge in _EDGES
                ),
                f'tacit_request_seconds_bucket{{le="+Inf"}} {total}',
                f"tacit_request_seconds_sum {self.seconds:.6f}",
                f"tacit_request_seconds_count {total}",
                *_head("tacit_people_total", "counter", "People who were answered."),
                f"tacit_people_total {self.people}",
                *_head("tacit_active_requests", "gauge", "Requests that are being answered."),
                f"tacit_active_requests {self.active}",
                *_head("tacit_model_reloads_total", "counter", "Reloads of the model file."),
                *(
                    f'tacit_model_reloads_total{{result="{result}"}} {self.reloads[result]}'
                    for result in ("done", "refused")
                ),
                *_head("tacit_model_items", "gauge", "Items of the model, by its local rule."),
                f'tacit_model_items{{rule="{kind}"}} {items}',
            ]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
