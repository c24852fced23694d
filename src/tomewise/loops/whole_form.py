"""Whether a question needs the whole text, by its meaning, its form and its words. No model is asked.

A linear rule over the vector of the question in the bundled embedder, over a few forms of questions, and over single
words and pairs of words. Its weights are fitted on labelled questions by `bench/whole_form.py`, which also says how
many it gets right.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tomewise.types import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray

_READ = 4_000  # characters of a question that are read
_PART = (
    r"(?:paragraph|section|clause|article|chapter|page|item|step|table|figure|scene|act|line|verse|appendix|annex)s?"
)
_NUMBER = r"(?:\d|[ivxlc]+\b|(?:one|two|three|four|five|six|seven|eight|nine|ten)\b)"
FORMS = {
    name: re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for name, pattern in {
        "one part": rf"\b{_PART}\.?\s+{_NUMBER}|§\s*\d",
        "all, each": r"\b(?:list|name|enumerate|find|count|collect|mention|show|give|tell|identify|mark|highlight"
        r"|(?:what|which|who) (?:are|were))\b.{0,20}\b(?:all(?![ -]hands)|every|each|any)\b",
        "count": r"\bhow many (?:of (?:these|those|the|them|our|my|your)|different|separate|distinct|times|occasions"
        r"|scenes|characters)\b|\A(?>.*?\bhow many\b).*\b(?:are there|appear"
        r"|(?:is|are|were|was) (?:mentioned|named|described)|in (?:total|all)|altogether|across|throughout)\b"
        r"|\btotal number\b",
        "most": r"\b(?:most|least) (?:often|frequent|common|times|prominent|sympathetic|cited|mentioned|discussed"
        r"|active|space|attention)|\b(?:speaks?|talks?|says?|appears?|comes? up|gets?|changes?|contributes?)"
        r" (?:the )?(?:most|least)\b",
        "many": r"\b(?:which|what) (?:(?!is\b|was\b|does\b|did\b)\w+ ){0,2}(?!\w*(?:ss|us|is)\b)\w+s "
        r"(?:are|were|do|did|have|come|came|apply|recur|get|remain|does|appear|of my|run|that|only|still)\b",
        "course": r"\b(?:throughout|over (?:time|the (?:years|course|months|weeks|decades|centuries|whole))"
        r"|in the course of|as the (?:\w+ )?\w+ (?:goes|moves|unfolds|progresses|develops)|by the end|across|evolution"
        r"|from (\w+) to (?:\1|the next))\b"
        r"|\A(?>.*?\bfrom (?:the )?(?:first|beginning|start|opening|early|earliest)\b).*\b(?:to|until)\b"
        r"|\A(?>.*?\bbetween (?:the )?(?:first|earliest|beginning)\b).*\b(?:last|latest|end)\b",
        "judgement": r"\b(?:biased?|one-sided|balanced|fair to|sympath\w+|reliable|trustworthy|convinc\w+|stance"
        r"|attitude|tone|mood|atmosphere|worr(?:y|ied)|strengths?|weakness(?:es)?|pros and cons|stands? for|symbol\w*"
        r"|motifs?|impression|portray\w*|paint\w*|perspective|contribution|genre|kind of (?:person|man|woman|book)"
        r"|relationship between)\b",
        "produce": r"(?:\A|[.!?:;,]\s|\b(?:please|you|to)\s)\W{0,20}(?:summari[sz]e|sum (?:\w+ )?up|recap|outline"
        r"|retell|analy[sz]e|trace|track|rank|group|sort|classify|tabulate|tally|compile|compare|contrast|turn|make"
        r"|draw up|create|prepare|rewrite|list|go through|catch me up)\b"
        r"|\b(?:summary|synopsis|overview|timeline|tl;?dr|nutshell|takeaways?)\b",
        "coherence": r"\b(?:contradict\w*|(?:in)?consisten\w+|loose ends?|gaps?|un(?:resolved|answered)|disagree\w*"
        r"|have in common|similarit\w+|differences? between|differ|agree on|still (?:open|not)|left (?:open|out)"
        r"|missing)\b",
        "change": r"\A(?>.*?\b(?:how|does|did|has|have)\b).*\b(?:change[sd]?|evolve[sd]?|develop(?:s|ed)?"
        r"|shift(?:s|ed)?|become)\b(?!\s+(?:the|a|an|my|your|it|his|her)\b)",
        "ever, never": r"\A(?!\W*(?:why|when|where|what happens)\b).*\b(?:n?ever|not once|at any point|nobody)\b",
        "in other languages": r"\b(?:zusammenfass\w*|überblick|im laufe|insgesamt|wie oft|alle[nrs]? \w+|jede[rsmn]?"
        r"|themen|nie(?:mals)?|jemals|entwickelt|veränder\w+|widerspr\w+|r[ée]sum\w+|aperçu|au fil|tout au long"
        r"|combien de fois|tou(?:s|tes) les|chaque|thèmes?|sujets|jamais|[ée]volu\w+|resum\w+|a lo largo"
        r"|cu[áa]ntas veces|tod[oa]s l[oa]s|cada|temas|nunca|riassum\w*|quante volte|tutt[ie])\b"
        r"|总结|概括|概述|全文|全书|所有|哪些|主要|变化|多少次|每(?:个|次|一)|从未|要約|まとめ|すべて|何回|요약|모든|резюм|кратко",
    }.items()
}


@dataclass(frozen=True)
class WholeForm:
    """Tells which questions need the whole text. `embedder` is the bundled one."""

    embedder: Embedder

    def find_reason(self, question: str) -> str:
        """Why a question needs the whole text, as "count" or "its meaning"; empty if it does not."""
        if not re.search(r"\w", question):
            return ""
        weights = load_weights()
        forms = find_forms(question)
        rating = weights["bias"] + float(self.embedder.embed([question[:_READ]])[0] @ weights["meaning"])
        rating += sum(weights["forms"][name] for name in forms)
        if rating + sum(weights["words"].get(words, 0.0) for words in find_words(question)) <= 0:
            return ""
        return ", ".join(name for name in forms if weights["forms"][name] > 0) or "its meaning"


def find_forms(question: str) -> list[str]:
    """The forms that a question has."""
    return [name for name, form in FORMS.items() if form.search(question[:_READ])]


def find_words(question: str) -> set[str]:
    """The words of a question, its question marks, and each two that follow one another, without case."""
    words = re.findall(r"\w+|[?？]", question[:_READ].casefold())
    return {*words, *map(" ".join, pairwise(words))}


@cache
def load_weights() -> dict[str, Any]:
    """What a vector, each form and some words weigh; above 0 a question needs the whole text."""
    weights: dict[str, Any] = json.loads(files("tomewise.loops").joinpath("whole_form.json").read_text("utf-8"))
    meaning: NDArray[np.float32] = np.array(weights["meaning"], np.float32)
    return {**weights, "meaning": meaning}
