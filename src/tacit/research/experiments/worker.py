"""A worker process: a dataset first, then job after job; a line of JSON in, a line out.

    python -m tacit.research.experiments.worker THREADS CORE...

It runs only on the cores it is given, so that workers never take each other's.
"""

import json
import os
import sys
import warnings
from typing import IO, Any

from tacit.errors import TacitError, TacitWarning


def main() -> None:
    """Answer until there is nothing more to read."""
    threads, *cores = (int(text) for text in sys.argv[1:])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    warnings.simplefilter("ignore", TacitWarning)  # of settings that are tuned: tables say so
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # whatever a library prints must not get between the answers
        _serve(sys.stdin, answers, threads)


def _serve(lines: IO[str], answers: IO[str], threads: int) -> None:
    from tacit.research.experiments.jobs import Job
    from tacit.research.experiments.preparing import prepare
    from tacit.research.experiments.running import run_job

    try:
        prepared = prepare(json.loads(lines.readline()))
    except TacitError as error:
        _answer(answers, {"error": str(error)})
        return
    _answer(answers, {"ready": True})
    for line in lines:
        _answer(answers, run_job(Job.from_json(json.loads(line)), prepared, threads))


def _answer(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
