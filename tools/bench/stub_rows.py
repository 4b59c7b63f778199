"""Creates and single calls against the stub server, beside aiohttp and httpx."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.plan import Plan
from bench.reports import Row, ratio
from bench.workers import Answer, Worker

__all__ = ["burst_rows", "create_rows", "sync_rows"]

DELAY = 0.05  # seconds, of the stub's answer to a create
SIDES = ("ours", "raw")
TARGETS = {1: 1.25, 64: 1.15, 512: 1.25, 2000: 1.25}
BURST_CONNECTIONS = 128  # our client's default
BURSTS = (100, 1000, 2000)
BURST_ROUNDS = 5
LINEAR = 2.2  # twice as many may take a tenth more than twice as long
RAW = "x raw aiohttp"


def create_rows(plan: Plan) -> Iterator[Row]:
    """CPU of creates in flight, fresh client and warm."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = make_certificate(Path(folder))
        with Worker("stub", str(DELAY), certificate, key, core=plan.servers) as stub:
            addresses = stub.ask()
            for in_flight, target in TARGETS.items():
                yield from creates(plan, addresses["url"], None, in_flight, target)
            yield from creates(plan, addresses["tls_url"], certificate, 64, TARGETS[64])


def creates(
    plan: Plan, url: str, certificate: str | None, in_flight: int, target: float
) -> Iterator[Row]:
    # One at a time is as slow as the delay: fewer tell as much, since each costs the same.
    count = plan.size(40, 5) if in_flight == 1 else plan.size(max(1000, in_flight), in_flight)
    question = {"count": count, "in_flight": in_flight, "connections": in_flight, "runs": 2}
    runs: dict[str, list[list[Answer]]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        workers = both_sides(stack, plan, url, certificate)
        for worker in workers.values():  # what happens once a process is no client's cost
            worker.ask(**{**question, "count": min(count, 64), "runs": 1})
        for _ in range(plan.rounds):
            for side, worker in workers.items():
                runs[side].append(worker.ask(**question)["runs"])
    how = f"{in_flight:,} in flight{', TLS' if certificate else ''}"
    for number, client in enumerate(("fresh", "warm")):
        ours, raw = ([run[number]["cpu"] for run in runs[side]] for side in SIDES)
        rounds = {"rounds": plan.rounds, "creates a round": count}
        yield Row(f"CPU of creates, {how}, {client} client", ratio(ours, raw), RAW, target, rounds)


def both_sides(
    stack: ExitStack, plan: Plan, url: str, certificate: str | None
) -> dict[str, Worker]:
    files = () if certificate is None else (certificate,)
    return {
        side: stack.enter_context(Worker("creating", side, url, *files, core=plan.measured))
        for side in SIDES
    }


def burst_rows(plan: Plan) -> Iterator[Row]:
    """One gather of many creates on a fresh client, in a fresh process."""
    with Worker("stub", str(DELAY), core=plan.servers) as stub:
        walls = {}
        for count in BURSTS:
            row, walls[count] = burst(plan, stub, count)
            yield row
    growth = walls[2000] / walls[1000]
    yield Row("burst of 2,000: wall against 1,000", growth, "x burst of 1,000", LINEAR)


def burst(plan: Plan, stub: Worker, count: int) -> tuple[Row, float]:
    url = stub.ask()["url"]
    question = {"connections": BURST_CONNECTIONS, "runs": 1}
    runs: dict[str, list[Answer]] = {side: [] for side in SIDES}
    for _ in range(plan.size(BURST_ROUNDS, 1)):
        for side in SIDES:
            with Worker("creating", side, url, core=plan.measured) as worker:
                worker.ask(count=10, in_flight=10, **question)
                stub.ask()
                (run,) = worker.ask(count=count, in_flight=count, **question)["runs"]
                runs[side].append({**run, "connections": stub.ask()["connections"]})
    medians = {
        side: {name: statistics.median([run[name] for run in runs[side]]) for name in runs[side][0]}
        for side in SIDES
    }
    ours, raw = medians["ours"], medians["raw"]
    details = {
        "x raw's peak memory": ours["peak_kib"] / max(raw["peak_kib"], 1),
        "KiB a create at the peak": ours["peak_kib"] / count,
        "connections": ours["connections"],
        "raw's connections": raw["connections"],
        "x raw's CPU": ours["cpu"] / raw["cpu"],
    }
    row = Row(f"burst of {count:,}: wall", ours["wall"] / raw["wall"], RAW, 1.5, details)
    return row, ours["wall"]


def sync_rows(plan: Plan) -> Iterator[Row]:
    """One sync call after the other, beside httpx."""
    count = plan.size(200, 20)
    runs: dict[str, list[Answer]] = {side: [] for side in ("ours", "httpx")}
    with ExitStack() as stack:
        stub = stack.enter_context(Worker("stub", "0", core=plan.servers))
        url = stub.ask()["url"]
        workers = {
            side: stack.enter_context(Worker("calling", side, url, core=plan.measured))
            for side in runs
        }
        for worker in workers.values():
            worker.ask(count=5)
        for _ in range(plan.rounds):
            for side, worker in workers.items():
                runs[side].append(worker.ask(count=count))
    wall, cpu = (
        ratio(*([run[name] for run in runs[side]] for side in runs)) for name in ("wall", "cpu")
    )
    yield Row("sync get: wall", wall, "x httpx", 1.0, {"x httpx's CPU": cpu})


def make_certificate(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1 and its key, made with the openssl program."""
    program = shutil.which("openssl")
    if program is None:
        raise SystemExit("The bench of TLS needs the openssl program.")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *(program, "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=bench"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=30,
    )
    return str(certificate), str(key)
