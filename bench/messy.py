"""Thirty small files as they lie in a folder: columns, tables, clauses, chats, mail, notes, code, four languages."""

from __future__ import annotations

import csv
import json
import mailbox
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

PLAIN = {
    "vault/Heron.md": """---
tags: [project, water]
---
# Project Heron
Lead:: [[Piet Aalders]] until December, then [[Ines Duarte]]

Goal: move the pumping station at [[Oostzaan]] to solar power. #energy
- [x] permit of the water board
- [ ] order 48 panels
""",
    "vault/Ines Duarte.md": "Took over [[Heron]] in January. Allergic to hazelnuts. Birthday 3 May.\n\nSpeaks Dutch, "
    "Portuguese\nand a little Frisian.\n",
    "vault/2024-02-11.md": "- call with [[Ines Duarte]]: panels are late by **six weeks**, the supplier in Leiden had a "
    "fire\n- dentist at 15:40\n- return the ladder to Noor\n",
    "chat.txt": """[04/03/2024, 19:02:11] Theo: who has the key of the boathouse?
[04/03/2024, 19:02:40] Maud: it hangs behind the meter cupboard
[04/03/2024, 19:03:05] Theo: and the alarm?
[04/03/2024, 19:05:59] Maud: 7719, then the hash
[04/03/2024, 19:06:30] Jonas: bring the green rope, the blue one is frayed
[05/03/2024, 08:11:02] Maud: regatta is moved to the 23rd because of the flood
""",
    "talk.vtt": """WEBVTT

00:00:01.000 --> 00:00:06.000
<v Rhea>Welcome back. Today we ask why the mill burned down.

00:00:06.500 --> 00:00:12.000
<v Ossian>The fire began in the dust of the bran room, not in the kiln

00:00:12.000 --> 00:00:16.000
<v Ossian>as the papers said. The insurers paid nine thousand crowns.
""",
    "film.srt": "1\n00:00:02,000 --> 00:00:05,000\nThe ferry leaves at dawn.\n\n2\n00:00:06,000 --> 00:00:09,000\n"
    "- Who told you?\n- The harbour master's widow.\n",
    "pump.py": '''"""Control of the pump."""

MAX_PRESSURE_BAR = 6.5  # above this the relief valve opens


def restart(delay_s: float = 40.0) -> None:
    """Start the pump again after a power cut; waits so that the well can refill."""
''',
    "todo.org": "* TODO Orchard\n** DONE Prune the quince\n   CLOSED: [2024-02-20]\n** TODO Graft Bramley on M26 stock\n"
    "   Scions lie in the fridge, wrapped in moss.\n* WAITING Bees\n  Swarm promised by Mr Okonkwo.\n",
    "guide.rst": """Telescope guide
===============

Collimation
-----------

Turn the three screws of the secondary mirror by **an eighth of a turn** at most.

.. warning::

   Never point the finder at the Sun.

Eyepieces
---------

:Widest: 32 mm
:Best for planets: 9 mm orthoscopic
""",
    "deploy.yaml": "service: tide-table\nreplicas: 3\nimage: registry.local/tide:4.2.1\nbackup:\n  schedule: '15 2 * * *'"
    "\n  keep_days: 21\nowner: harbour-team  # ask Svea before a change\n",
    "thesis.tex": "\\section{Results}\n\\label{sec:res}\nThe eels of Lough Neagh lost \\textbf{17\\,\\%} of their weight in "
    "the first winter \\cite{moriarty}.\n% TODO: check the sample of 1998\n",
    "server.log": "2024-05-06 03:14:07 WARN disk /srv 91% full\n2024-05-06 03:20:44 ERROR backup stopped: no space on "
    "/srv\n2024-05-06 07:02:10 INFO removed core dumps, /srv 54% full\n",
    "config.json": '{"printer": {"name": "Brother-3", "room": "B214", "paper": "A4"},\n "fax": null, "porter": "ext. 4410"}',
    "Mietvertrag.md": """# Mietvertrag Lindenallee 14

§ 2 Mietzeit. Das Mietverhältnis beginnt am 1. Februar 2023 und läuft auf unbestimmte Zeit.

§ 5 Die Kaution beträgt drei Monatsmieten, zusammen 2.340 Euro.

§ 9 Haustiere. Hunde bedürfen der Zustimmung des Vermieters; Katzen sind erlaubt.
""",
    "recette.txt": "Soupe de Mamie Odette\n\nOdette est née à Cancale. Elle faisait revenir quatre échalotes dans du "
    "beurre salé,\npuis ajoutait un demi-litre de cidre brut.\nLaisser mijoter vingt-cinq minutes.\n",
    "茶.md": "# 龙井茶\n\n龙井茶产于杭州西湖。最好的茶叶在清明节前采摘。泡茶的水温应为八十度。\n",
    "shop.html": "<html><head><title>Kiln &amp; Clay</title></head><body><nav>Home | Basket (0)</nav><div id=cookie>We use "
    "cookies</div><main><h1>Opening</h1><p>Open Wednesday to Saturday, ten to&nbsp;six.</p><h2>Courses</h2><p>Raku days "
    "cost 85 pounds, clay and firing included.</p><table><tr><th>Glaze</th><th>Cone</th></tr><tr><td>Celadon</td>"
    "<td>10</td></tr><tr><td>Shino</td><td>9</td></tr></table></main><footer>© Kiln</footer></body></html>",
}  # fmt: skip
LATIN_1 = (
    "Lieber Jörg,\r\n\r\ndie Glühbirne im Flur ist kaputt, der Hausmeister heißt Herr Brünjes.\r\nGrüße, Käthe\r\n"
)
CLAUSES = (
    "The tenant is Halina Wrobel; the landlord is Castle Mead Estates.",
    "The rent is 845 pounds a month, due on the fifth day.",
    "The deposit of 975 pounds is held by the Deposit Service.",
    "The term is twelve months from 1 September 2023.",
    "Either party may end the lease with two months' notice in writing.",
    "No smoking is permitted in any part of the building.",
    "The tenant shall bleed the radiators each October.",
    "A late payment bears interest of 3 per cent above the base rate.",
    "The boiler is serviced by the landlord once a year.",
    "Subletting needs the landlord's written consent.",
)
STATEMENT = (
    ("Date", "Description", "Out", "In", "Balance"),
    ("01 Mar", "Balance brought forward", "", "", "2,310.40"),
    ("03 Mar", "Rent Castle Mead Estates", "845.00", "", "1,465.40"),
    ("05 Mar", "Salary Halberd Ltd", "", "2,875.00", "4,340.40"),
    ("11 Mar", "Dr Fenn, dentist", "164.50", "", "4,175.90"),
    ("19 Mar", "Northern Rail season ticket", "212.00", "", "3,963.90"),
)
PAPER = (
    "Abstract. We measured how far limpets travel from their home scar in one tide. "
    "Two hundred limpets were marked with nail varnish on the shore at Bracelet Bay.",
    "Methods. Each limpet was photographed every twelve minutes. A drone failed in the third week, so its pictures were "
    "left out. The observers were two students who did not know the hypothesis.",
    "Results. The median journey was 41 centimetres. Limpets on vertical rock travelled less than those on flat rock. "
    "Seven animals never came home.",
    "Discussion. We believe that the limpets follow their own trail of mucus. The work was paid for by the Gower Trust.",
)


def make_folder(folder: Path) -> None:
    """Write all files. Needs reportlab, python-docx, python-pptx, openpyxl and EbookLib."""
    for name, text in PLAIN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "Brief.txt").write_bytes(LATIN_1.encode("latin-1"))
    _make_pdfs(folder)
    _make_office_files(folder)
    _make_book(folder)
    _make_tables(folder)
    _make_mail(folder)
    cells = [
        ("markdown", "## Yield\nBarley gave 6.1 tonnes a hectare, oats 4.8."),
        ("code", "fields = load('fields.csv')\nfields.groupby('crop').mean()"),
        ("markdown", "The field *Long Acre* is left out: its scales were broken."),
    ]
    made = [{"cell_type": kind, "metadata": {}, "source": text} for kind, text in cells]
    (folder / "yield.ipynb").write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def _make_pdfs(folder: Path) -> None:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, SimpleDocTemplate, Table

    body = getSampleStyleSheet()["BodyText"]
    paper = BaseDocTemplate(str(folder / "paper.pdf"), title="Journeys of limpets")
    columns = [Frame(x, 500, 220, 250) for x in (50, 310)]
    paper.addPageTemplates(PageTemplate(frames=columns))
    paper.build([Paragraph(text, body) for text in PAPER])
    SimpleDocTemplate(str(folder / "statement.pdf")).build([Table(STATEMENT)])
    lease = [Paragraph(f"{number}. {clause}", body) for number, clause in enumerate(CLAUSES, 1)]
    SimpleDocTemplate(str(folder / "lease.pdf")).build(lease)


def _make_office_files(folder: Path) -> None:
    import docx
    import openpyxl
    import pptx

    book = docx.Document()
    book.add_heading("Staff handbook", 0)
    book.add_paragraph("Holiday is 27 days a year. Unused days expire at the end of March.")
    table = book.add_table(rows=0, cols=2)
    for cells in (("First aider", "Room"), ("Gwen Tait", "Stores"), ("Idris Lowe", "Workshop")):
        for cell, text in zip(table.add_row().cells, cells, strict=True):
            cell.text = text
    book.save(str(folder / "handbook.docx"))
    sheets = openpyxl.Workbook()
    for row in (["Item", "Planned", "Spent"], ["Roof", 12000, 13450], ["Organ", 3000, 0], ["Heating", 5400, 5120]):
        sheets.active.append(row)
    sheets.save(folder / "budget.xlsx")
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Launch"
    slide.placeholders[1].text = "Date: 14 June\nVenue: the old tram depot\nSpeaker: Amara Nwosu"
    slide.notes_slide.notes_text_frame.text = "Do not mention the delay of the second phase."
    deck.save(folder / "slides.pptx")


def _make_book(folder: Path) -> None:
    from ebooklib import epub

    book = epub.EpubBook()
    book.set_title("The Salt Road")
    texts = {
        "The Inn": "Bettina kept the inn at the ford. She had lost her left thumb to a millstone as a girl. "
        "Strangers paid in salt.",
        "The Pass": "Snow closed the pass on the eve of Saint Martin. The mule Ferrow carried the doctor up to the hermit, "
        "who had eaten poisoned mushrooms.",
    }  # fmt: skip
    for number, (title, text) in enumerate(texts.items()):
        page = epub.EpubHtml(title=title, file_name=f"{number}.xhtml")
        page.content = f"<h1>{title}</h1><p>{text}</p>"
        book.add_item(page)
        book.toc.append(page)
        book.spine.append(page)
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(str(folder / "salt.epub"), book)


def _make_tables(folder: Path) -> None:
    staff = [("Name", "Role", "Desk"), ("Okoro, Ada", "archivist", "3F-12"), ("Lindqvist, Per", "binder", "1B-02")]
    stock = [("part", "shelf", "count"), ("gasket 40 mm", "C7", "112"), ("float valve", "A2", "6")]
    for name, rows, dialect in (("staff.csv", staff, "excel"), ("stock.tsv", stock, "excel-tab")):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, dialect).writerows(rows)


def _make_mail(folder: Path) -> None:
    def write() -> Iterator[EmailMessage]:
        for sender, date, subject, text in (
            ("Lotte <lotte@mail.example>", "Mon, 08 Jan 2024 09:15:00 +0000", "Piano",
             "The tuner comes on Friday at ten. He wants the lid open and the cat out of the room."),
            ("Bram <bram@mail.example>", "Tue, 09 Jan 2024 18:30:00 +0000", "Re: Piano",
             "> The tuner comes on Friday at ten.\nI shall be in Ghent. The spare key is with the baker."),
            ("orders@seeds.example", "Wed, 10 Jan 2024 11:00:00 +0000", "Order 5518",
             "Thank you. Order 5518: 3 packets of sweet pea Matucana, 1 dibber. Total 14.20 euros. Delivery in 8 days."),
        ):  # fmt: skip
            message = EmailMessage()
            message["From"], message["Date"], message["Subject"] = sender, date, subject
            message.set_content(text)
            yield message

    *letters, order = write()
    box = mailbox.mbox(folder / "letters.mbox")
    for message in letters:
        box.add(message)
    box.close()
    (folder / "order.eml").write_bytes(order.as_bytes())
