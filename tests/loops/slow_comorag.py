"""A slow reading of ComoRAG's algorithm 1, from the paper, over random stories in which every reply is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.loops.doubles import EMBEDDER

from tomewise.errors import BadReply, Refused
from tomewise.loops.evidence import FENCE, describe_piece, make_token_counter
from tomewise.testing.scripted import Call, ScriptedModel
from tomewise.types import Evidence

LAYERS = ("ver", "sem", "epi")
COUNT = make_token_counter(EMBEDDER)


class World:
    """What each search finds, and what each role replies; a reply may be unusable, and `skipped` counts those made."""

    def __init__(self, dice: random.Random, passages: Sequence[str]) -> None:
        self.passages, self.skipped = passages, 0
        self.question = "Why did the keeper leave?"
        self.cycles, self.limit, self.fuse = dice.randint(0, 4), dice.randint(1, 4), dice.choice((0, 0.5, 1))
        self.shares = {"ver": 8, "sem": dice.randint(2, 4), "epi": 2}
        self.budget = dice.choice((900, 1500, 6000))
        failing: list[object] = [{"answer": "*"}, Refused("no answer")]
        self.failures = [failing[0], *dice.choices(failing, k=4)][: dice.randint(0, 5)]
        queries = [self.question, *(f"probe {number}" for number in range(9))]
        self.asked = [dice.choices(queries, k=dice.randint(0, 3)) for _ in range(self.cycles)]
        self.regulated = dice.random() < 0.8
        self.broken = {step for step in range(self.cycles) if dice.random() < 0.1}
        pieces = {
            layer: [
                Evidence(
                    id=f"{layer}{number}",
                    layer=layer,
                    text=f"{layer}{number}" + " word" * dice.choice((0, 3, 60, 150)),
                    score=1.0,
                    sources=(passages[number % len(passages)],),
                )
                for number in range(12)
            ]
            for layer in LAYERS
        }
        self.found = {
            layer: {query: dice.sample(pieces[layer], dice.randint(0, 8)) for query in queries} for layer in LAYERS
        }
        cues: list[object] = [{"cue": ""}, BadReply("no cue"), None, None, None, None]
        self.cues = {(query, layer): dice.choice(cues) for query in queries for layer in LAYERS}

    @property
    def bounds(self) -> dict[str, Any]:
        names = ("cycles", "limit", "fuse", "shares", "budget")
        return {name: getattr(self, name) for name in names}

    def write_cue(self, probe: str, layer: str) -> str:
        return "" if self.cues[probe, layer] else f"{probe} {layer}"

    def count(self, reply: object) -> object:
        self.skipped += isinstance(reply, Exception)
        return reply

    def write_out(self, evidence: Sequence[Evidence]) -> list[str]:
        """The texts as they are shown: by layer, then in the order of the documents."""
        places = {piece.id: self.passages.index(piece.sources[0]) for piece in evidence}
        ordered = sorted(evidence, key=lambda piece: (LAYERS.index(piece.layer), places[piece.id], piece.id))
        return [piece.text for piece in ordered]

    def make_model(self) -> ScriptedModel:
        answers = iter([*self.failures, *[{"answer": "for love"}] * 9])
        probes = iter([BadReply("no") if step in self.broken else {"probes": p} for step, p in enumerate(self.asked)])
        return ScriptedModel(
            {
                "answer": lambda _: self.count(next(answers)),
                "probe": lambda _: self.count(next(probes)),
                "encode": lambda given: self.count(
                    self.cues[given.probe, given.layer] or {"cue": self.write_cue(given.probe, given.layer)}
                ),
                "fuse": lambda given: {"cue": f"all of {len(given.cues)}"},
            }
        )

    def list_calls(self, made: Sequence[Call], like: Sequence[list[Any]]) -> list[list[Any]]:
        """The calls in groups as large as these; what runs side by side has no order."""
        calls, groups = [_tell(call) for call in made], []
        for size in map(len, like):
            groups.append(sorted(calls[:size]))
            calls = calls[size:]
        return [*groups, calls] if calls else groups


def _tell(call: Call) -> tuple[Any, ...]:
    given: Any = call.given
    if call.role == "answer":
        return ("answer", [piece.text for piece in given.evidence], sorted(given.notes))
    if call.role == "encode":
        assert not given.known
        return ("encode", given.probe, given.layer, [piece.text for piece in given.evidence])
    if call.role == "probe":
        assert not given.missing
        return ("probe", sorted(given.past_probes), sorted(given.cues))
    return (call.role, sorted(given.cues))


Unit = tuple[str, str, list[Evidence], str]  # probe, layer, evidence, cue


def follow_algorithm(world: World) -> tuple[list[list[Any]], str | None]:
    """The calls, those of one list side by side, and the answer; None for the failure signal."""
    question, calls = world.question, list[list[Any]]()
    pool, cues, read = list[Unit](), list[str](), set[str]()

    def retrieve(probes: list[str]) -> list[Unit]:
        """Tri-Retrieve: the best of each layer for each probe; without regulation no duplicates (section 4.2)."""
        units = []
        for probe in probes:
            for layer in LAYERS:
                found = world.found[layer].get(probe, [])
                if not world.regulated:
                    found = [piece for piece in found if piece.id not in read]
                units.append((probe, layer, found[: world.limit], ""))
        return units

    def encode(units: list[Unit]) -> tuple[list[Unit], list[Any]]:
        """Mem-Encode: one cue for each probe and layer that found anything."""
        made, asked = [], list[Any]()
        for probe, layer, evidence, _ in units:
            if evidence:
                made.append((probe, layer, evidence, world.write_cue(probe, layer)))
                asked.append(("encode", probe, layer, world.write_out(evidence)))
        return made, asked

    def fuse() -> list[str]:
        """The share of the cues of the pool that are nearest to the question, at least one (equation 2, B.4)."""
        named = list(dict.fromkeys(cue for _, _, _, cue in pool if cue))
        near = {cue: float(EMBEDDER.embed([cue])[0] @ EMBEDDER.embed([question])[0]) for cue in named}
        named.sort(key=lambda cue: -round(near[cue], 6))
        return named[: max(1, int(world.fuse * len(named)))] if world.fuse else []

    def answer(units: list[Unit], fused: str) -> tuple[Any, ...]:
        """Try-Answer: of each layer what its share holds, its cues first; each unit has its turn (equation 3, B.4)."""
        shown, notes = list[Evidence](), [fused] if fused else []
        parts = 1 + sum(world.shares.values())
        left = world.budget // parts - sum(size + FENCE for size in COUNT(notes))
        for layer in sorted(LAYERS, key=lambda name: world.shares[name]):
            share = world.budget * world.shares[layer] // parts
            of_layer = [unit for unit in units if unit[1] == layer]
            own = list(dict.fromkeys(cue for _, _, _, cue in of_layer if cue))
            notes += own
            room = share - sum(size + FENCE for size in COUNT(own))
            turns = [piece for rank in range(world.limit) for unit in of_layer for piece in unit[2][rank : rank + 1]]
            for place, piece in enumerate({piece.id: piece for piece in turns}.values()):
                size = sum(COUNT([piece.text, describe_piece(piece)])) + FENCE
                if size > room + (0 if place else min(share, left)):
                    break
                room -= size
                shown.append(piece)
                if room < 0:  # it is longer than the share, and borrows
                    break
            left += room
        return ("answer", world.write_out(shown), sorted(notes))

    units = retrieve([question])
    calls.append([answer(units, "")])
    history = [question]
    for step in range(world.cycles + 1):
        if step == len(world.failures):
            return calls, "for love"
        if not world.cycles:
            break
        if step == 0:
            units, asked = encode(units)
            calls.append(sorted(asked))
        pool += units
        read |= {piece.id for unit in units for piece in unit[2]}
        cues = list(dict.fromkeys(unit[3] for unit in units if unit[3]))
        if step == world.cycles:
            break
        if world.regulated:
            calls.append([("probe", sorted(history), sorted(cues))])
            planned = [] if step in world.broken else world.asked[step]
            probes = [probe for probe in dict.fromkeys(planned) if probe not in history]
        else:
            probes = [question]
        units, asked = encode(retrieve(probes))
        history += probes
        fused = fuse()
        if fused:
            asked.append(("fuse", sorted(fused)))
        calls.append(sorted(asked))
        calls.append([answer(units, f"all of {len(fused)}" if fused else "")])
    return calls, None
