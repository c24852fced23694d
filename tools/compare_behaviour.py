"""Check that a change of the code's shape changes nothing that a user has.

PYTHONPATH=OLD/src python tools/compare_behaviour.py write old.json
PYTHONPATH=src     python tools/compare_behaviour.py write new.json
python tools/compare_behaviour.py compare old.json new.json

Written are digests of: the export of the sample with every layer; what `tome ask --json --trace` prints of ten
questions in every system, times aside; every prompt, with the key under which its reply is kept; and the three
questions of a session.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tomewise import Tome, sample
from tomewise.embedding.choose_embedder import choose_embedder
from tomewise.errors import ModelError
from tomewise.language.extractive import ExtractiveModel
from tomewise.language.forwarding import Forwarding
from tomewise.language.prompts import Prompts
from tomewise.outgoing.answer_models import TracedAnswer
from tomewise.systems.registry import SYSTEMS
from tomewise.types import Answer, Embedder, In, Out, Role

QUESTIONS = 10
SESSIONS = ("comorag", "hgmem", "hybrid")
_TIME = re.compile(r'"([a-z_]*seconds|depth)": [0-9.e-]+')  # the depth of calls is read from their times


class NotingModel(Forwarding):
    """Notes the digest of each prompt that it is asked, with the schema of the reply."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(ExtractiveModel(embedder))
        self._prompts = Prompts()
        self.prompts: set[str] = set()

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model."""
        parts = (role.name, self._prompts.render(role, given), given.model_dump_json(), role.output.model_json_schema())
        self.prompts.add(f"{role.name} {digest(parts)}")
        return await self._model.ask(role, given)


def write() -> Iterator[tuple[str, str]]:
    """Each name of something that a user has, and its digest."""
    with tempfile.TemporaryDirectory() as folder:
        embedder = choose_embedder("bundled")
        model = NotingModel(embedder)
        with Tome.open(Path(folder) / "sample.tome", model=model, embedder=embedder) as tome:
            tome.add(copy_story())
            for system in SYSTEMS:
                tome.build(system=system)
            for line in tome.export():
                yield f"export {digest(line)}", ""
            yield from write_prompts("build", model)
            for system in SYSTEMS:
                for item in sample.read_questions()[:QUESTIONS]:
                    yield f"answer {system} {item.id}", write_answer(tome, item.question, system)
                yield from write_prompts(system, model)
            for system in SESSIONS:
                for item in sample.read_questions()[:3]:
                    answer = tome.session(system).ask(item.question, system=system)
                    yield f"session {system} {item.id}", digest(describe(answer))
                yield from write_prompts(f"session {system}", model)


def copy_story() -> Path:
    """The story at a path that is equal for every source tree, since ids derive from it."""
    path = Path(tempfile.gettempdir()) / "tomewise-compare" / "story.md"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sample.STORY.read_bytes())
    return path


def write_prompts(name: str, model: NotingModel) -> Iterator[tuple[str, str]]:
    """The prompts since the last time."""
    for prompt in sorted(model.prompts):
        yield f"prompt {name} {prompt}", ""
    model.prompts.clear()


def write_answer(tome: Tome, question: str, system: str) -> str:
    """The digest of what the command prints."""
    try:
        return digest(describe(tome.ask(question, system=system)))
    except ModelError as error:
        return digest(str(error))


def describe(answer: Answer) -> str:
    """What the command prints as JSON, without times."""
    return _TIME.sub("", json.dumps(TracedAnswer.of(answer).write(), sort_keys=True))


def digest(value: object) -> str:
    return sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def compare(old: dict[str, str], new: dict[str, str]) -> int:
    """Print each difference; 1 if there is any."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            print(f"gone: {name}")
        elif name not in old:
            print(f"new: {name}")
        elif old[name] != new[name]:
            print(f"differs: {name}")
    print(f"{len(old)} and {len(new)} digests compared")
    return int(old != new)


def main() -> int:
    """Write or compare."""
    match sys.argv[1:]:
        case ["write", path]:
            Path(path).write_text(json.dumps(dict(write()), indent=1), encoding="utf-8")
            return 0
        case ["compare", old, new]:
            return compare(*(json.loads(Path(path).read_text(encoding="utf-8")) for path in (old, new)))
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
