"""An archive of many kinds of file: minutes, mail, captions and a table, with filters, and after a change.

python examples/archive.py     # writes the files of an invented town council into archive/
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tomewise import Evidence, Tome

ARCHIVE, QUERY = Path("archive"), "the repair of the ferry"
ITEMS = ("the bridge", "the school roof", "the ferry", "the market hall")
MINUTES = "---\nbody: council\nmonth: {number}\n---\n# Minutes {number}\n\nTo repair {item}, {price} crowns.\n"
MAIL = (
    "From: ilse@council.example\nSubject: {item}\nDate: {day} May 2024 09:00:00 +0000\n\nThe builder of {item} waits.\n"
)
CAPTIONS = "WEBVTT\n\n00:00:01.000 --> 00:00:04.000\n<v Per Holm>Nobody repaired {item} in {year}.\n"


def write_archive() -> None:
    """Twelve small files: four of minutes, four mails, three recordings, and a table of payments."""
    shutil.rmtree(ARCHIVE, ignore_errors=True)
    for folder in ("minutes", "mail", "recordings"):
        (ARCHIVE / folder).mkdir(parents=True)
    for number, item in enumerate(ITEMS, start=1):
        (ARCHIVE / f"minutes/{number}.md").write_text(MINUTES.format(number=number, item=item, price=1000 * number))
        (ARCHIVE / f"mail/{number}.eml").write_text(MAIL.format(item=item, day=number))
        if number < 4:
            (ARCHIVE / f"recordings/{number}.vtt").write_text(CAPTIONS.format(item=item, year=1990 + number))
    (ARCHIVE / "payments.csv").write_text(
        "payee,for,crowns\nHarbour Works,the bridge,1000\nRoof & Sons,the school roof,2000\n"
    )


def show(where: str, pieces: list[Evidence]) -> None:
    """Print each piece by its last line."""
    print(f"{QUERY}, {where}:")
    for piece in pieces:
        print(f"  {piece.title or '-'}: {piece.text.splitlines()[-1]}")


def main() -> None:
    """Ask all files, some of them, and all of them again after a change."""
    write_archive()
    with Tome.open("archive.tome") as tome:
        print(tome.add(ARCHIVE, sync=True))
        show("everywhere", tome.search(QUERY, limit=2))
        show("minutes from March on", tome.within(where=["body=council", "month>=3"]).search(QUERY, limit=2))
        show("mail", tome.within("archive/mail").search(QUERY, limit=2))

        (ARCHIVE / "mail" / "4.eml").unlink()
        (ARCHIVE / "mail" / "1.eml").rename(ARCHIVE / "bridge.eml")
        print("after a mail was deleted and another one moved:", tome.add(ARCHIVE, sync=True))


if __name__ == "__main__":
    main()
