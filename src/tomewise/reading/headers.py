"""Find the header of a table: titles above it, and the rows that name its columns.

The first rows are compared with those below. Words above numbers, dates or codes name them; so do years above numbers
that are no years. Where all is words, a row is a header only if it reads as one: a wrong name makes false facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["", "number", "truth", "code", "words"]  # a date is a code

_MOST_HEADS = 3  # rows of one header
_AGREED = 0.7  # of the cells of a column that are of its kind, at least
_YEARS = range(1500, 2201)
_NOTHING = frozenset("- – — . .. ... ? / n/a na n.a. nan nat null nil none #n/a".split())
_TRUTHS = frozenset("true false yes no ja nein oui non si sí".split())
_NUMBER = re.compile(
    r"[-+−–(]?(?:[$€£¥₹]|[A-Z]{3})? ?[-+−]?(?:\d[\d.,'’ ]*|\.\d+)(?:[eE][-+]?\d+)? ?(?:%|‰|[$€£¥₹]|[A-Z]{3})?\)?"
)
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.\w+|\w+://.*|[\w-]+(?:/[\w.-]+)+")
_STYLED = re.compile(r"[^\W_]+_\w+|[a-z]+[A-Z]\w*")  # first_name, firstName
# What columns are called, in some languages.
_NAMES = frozenset(
    "id no nr num number code key ref name names surname firstname lastname first last full title author authors date "
    "day month year time start end from to city town place country region state street address zip email mail phone "
    "tel url link type kind category class group status level language text description comment comments note notes "
    "question answer term meaning definition word value values unit units amount quantity price total sum count rate "
    "score product item article customer client company firm department role position gender sex age species sender "
    "receiver subject message label tag tags source target file path color colour size result team player owner "
    "nummer vorname nachname titel autor datum tag monat jahr zeit stadt ort land strasse straße adresse plz typ art "
    "kategorie klasse gruppe sprache beschreibung bemerkung frage antwort begriff bedeutung wert einheit betrag menge "
    "preis summe anzahl kunde firma abteilung rolle alter nom prénom prenom titre auteur jour mois année annee ville "
    "lieu pays région rue adresse catégorie groupe langue texte remarque réponse valeur unité montant quantité prix "
    "nombre client société nombre apellido título autor fecha día mes año ciudad lugar país región calle dirección "
    "tipo categoría grupo idioma texto descripción pregunta respuesta valor unidad importe cantidad precio cliente "
    "empresa nome cognome titolo autore data giorno mese anno città luogo paese regione indirizzo lingua testo "
    "descrizione domanda risposta valore quantità prezzo sobrenome cidade país endereço língua pergunta resposta "
    "preço naam voornaam achternaam titel plaats adres taal vraag antwoord waarde aantal prijs klant".split()
)


def find_header(rows: Sequence[tuple[int, Sequence[str]]]) -> tuple[int, int]:
    """How many of the first rows are titles, and how many behind them name the columns.

    The rows have their numbers, and cells without outer white space; none is empty.
    """
    titles = _count_titles(rows)
    cells = [row for _, row in rows[titles:]]
    for heads in range(min(_MOST_HEADS, len(cells) - 1), 0, -1):
        if _is_header(cells[:heads], cells[heads:]):
            return titles, heads
    return titles, 0


def judge_kind(cell: str) -> Kind:
    """What kind of value a cell holds; empty if it says that it has no value."""
    if not cell or cell.lower().strip("[]()") in _NOTHING:
        return ""
    if _NUMBER.fullmatch(cell):
        return "number"
    if cell.lower() in _TRUTHS:
        return "truth"
    signs = sum(character.isalnum() for character in cell)
    return "code" if 2 * sum(map(str.isdigit, cell)) >= max(signs, 1) or _ADDRESS.fullmatch(cell) else "words"


def _count_titles(rows: Sequence[tuple[int, Sequence[str]]]) -> int:
    """The rows above a table: those with one cell, and those before a gap that are all narrower than the table."""
    widths = Counter(len(row) for _, row in rows)
    width = max(widths, key=lambda each: (each > 1, widths[each], each))
    gaps = (at for at, ((above, _), (below, _)) in enumerate(pairwise(rows), start=1) if below > above + 1)
    count = next((at for at in gaps if max(len(row) for _, row in rows[:at]) < width <= len(rows[at][1])), 0)
    while count < len(rows) - 1 and len(rows[count][1]) < width:
        if len(rows[count][1]) > 1 and not rows[count][1][0].startswith("# "):
            break
        count += 1
    return count


def _is_header(head: Sequence[Sequence[str]], body: Sequence[Sequence[str]]) -> bool:
    width = max(map(len, [*head, *body]))
    columns = [[judge_kind(row[at]) for row in body if at < len(row)] for at in range(width)]
    kinds = [_find_kind(column) for column in columns]
    votes = [_count_votes(row, kinds, body) for row in head]
    if len(head) > 1:
        # Only where a name stands for a group, or a unit below some names, is more than one row a header.
        if len(head) == _MOST_HEADS and len(head[-1]) == 1:  # pandas names its index below the groups
            votes.pop()
        return any(_has_gap(row, width) for row in head) and all(not like and unlike for unlike, like in votes)
    unlike, like = votes[0]
    return unlike > like or (unlike == like == 0 and _reads_as_header(head[0], body))


def _has_gap(row: Sequence[str], width: int) -> bool:
    return len({cell for cell in row if judge_kind(cell)}) < width


def _find_kind(kinds: Sequence[Kind]) -> Kind:
    filled = [kind for kind in kinds if kind]
    if not filled:
        return ""
    kind, count = Counter(filled).most_common(1)[0]
    return kind if count >= _AGREED * len(filled) else "words"


def _count_votes(row: Sequence[str], kinds: Sequence[Kind], body: Sequence[Sequence[str]]) -> tuple[int, int]:
    """In how many columns of numbers, truths or codes a row is unlike those below it, and in how many like them."""
    unlike = like = 0
    are_labels = _are_labels(row, kinds, body)
    for cell, kind in zip(row, kinds, strict=False):
        own = judge_kind(cell)
        if kind not in ("", "words") and own:
            is_name = own != kind if own != "number" else kind == "number" and are_labels
            unlike, like = unlike + is_name, like + (not is_name)
    return unlike, like


def _are_labels(row: Sequence[str], kinds: Sequence[Kind], body: Sequence[Sequence[str]]) -> bool:
    """Whether the numbers of a row are names: years in order above other numbers, or 0, 1, 2 above an index."""
    places = [at for at, cell in enumerate(row) if judge_kind(cell) == "number"]
    if not all(row[at].isdecimal() for at in places) or len(places) == 0:
        return False
    numbers = [int(row[at]) for at in places]
    if not row[0] and numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        return True
    below = [each[at] for each in body for at in places if at < len(each)]
    if not all(number in _YEARS for number in numbers) or any(_is_year(cell) for cell in below):
        return False
    steps = [after - before for before, after in pairwise(dict.fromkeys(numbers))]
    if not steps:
        return not row[0] or any(_is_name(cell) for cell in row)
    return (len(set(steps)) == 1 and abs(steps[0]) <= 10) or (len(steps) > 1 and len({step > 0 for step in steps}) == 1)


def _is_year(cell: str) -> bool:
    return cell.isdecimal() and int(cell[:9]) in _YEARS


def _is_name(cell: str) -> bool:
    """Whether a cell reads as the name of a column: `Name`, `Date of birth`, `first_name`."""
    words = cell.lower().replace("_", " ").split()
    return bool(words) and len(words) <= 4 and not _NAMES.isdisjoint((words[0].strip(".:#"), words[-1].strip(".:#")))


def _reads_as_header(row: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether a row above rows of words alone is a header: no cell of it comes again, and it is written otherwise."""
    columns = [[each[at] for each in body if at < len(each) and each[at]] for at in range(len(row))]
    pairs = [(name, column) for name, column in zip(row, columns, strict=True) if name]
    if any(name in column for name, column in pairs) or len({name for name, _ in pairs}) < len(pairs):
        return False
    below = [cell for column in columns for cell in column]
    if 3 * sum(map(_is_name, row)) >= len(row) or (
        any(map(_STYLED.fullmatch, row)) and not any(map(_STYLED.fullmatch, below))
    ):
        return True
    if not row[0] and len(columns[0]) == len(body):
        return True
    for is_styled in (str.islower, str.isupper):
        if all(is_styled(name) for name, _ in pairs) and 2 * sum(map(is_styled, below)) < len(below):
            return True
    for name, column in pairs:
        if len(column) > 1 and min(map(len, column)) > 2 * len(name) + 8:
            return True
        if len(column) > 3 and 2 * len(set(column)) <= len(column):
            return True
    return False
