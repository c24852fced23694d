from __future__ import annotations

from tomewise.language.extractive.extracting import extract_entities, extract_relations, extract_triples
from tomewise.language.extractive.gist import write_gist
from tomewise.language.roles import ExtractIn, PassageIn

LISLE = "Matthew Lisle founded Tide House in 1843. Mrs. Moy worked for Matthew Lisle. The stair is steep."


def test_entities_are_distinct_and_begin_with_the_title():
    assert extract_entities(PassageIn(text=LISLE, title="Tide House")).entities == [
        "Tide House",
        "Matthew Lisle",
        "1843",
        "Mrs. Moy",
    ]


def test_triples_relate_neighbours_by_the_words_between_them():
    found = extract_triples(ExtractIn(text=LISLE)).triples
    assert ["Matthew Lisle", "founded", "Tide House"] in found
    assert ["Matthew Lisle", "founded in", "1843"] in found
    assert ["Mrs. Moy", "worked for", "Matthew Lisle"] in found
    assert all(isinstance(triple, list) and len(triple) == 3 for triple in found)


def test_a_sentence_without_a_subject_is_about_the_title():
    found = extract_triples(ExtractIn(text="It was built in 1843.", title="Tide House"))
    assert found.triples == [["Tide House", "was built in", "1843"]]


def test_entities_named_beforehand_are_found_in_any_case():
    found = extract_triples(ExtractIn(text="The repeater belongs to Mrs. Moy.", entities=["Repeater"]))
    assert ["Repeater", "belongs to", "Mrs. Moy"] in found.triples


def test_relations_describe_by_the_sentence_and_count_how_often():
    found = extract_relations(PassageIn(text="Mr. Stroud met Mrs. Moy at Tide House. Mrs. Moy thanked Mr. Stroud."))
    assert [(e.name, e.type) for e in found.entities] == [
        ("Mr. Stroud", "person"),
        ("Mrs. Moy", "person"),
        ("Tide House", "geo"),
    ]
    pair = found.relationships[0]
    assert {pair.source, pair.target} == {"Mr. Stroud", "Mrs. Moy"}
    assert (pair.strength, pair.description) == (2.0, "Mr. Stroud met Mrs. Moy at Tide House.")


def test_a_gist_resolves_pronouns_and_short_names_and_says_so():
    found = write_gist(PassageIn(text="Ebenezer Scrooge was cold. He sat down. Mrs. Moy saw Scrooge and took his hat."))
    assert found.memory == (
        "Ebenezer Scrooge was cold. Ebenezer Scrooge sat down. Mrs. Moy saw Ebenezer Scrooge and took his hat."
    )
    assert found.notes == "He = Ebenezer Scrooge; Scrooge = Ebenezer Scrooge"


def test_a_gist_owns_with_possessives_and_leaves_speech_alone():
    found = write_gist(PassageIn(text="Mrs. Moy came in. Her hat was wet. “She is late,” said the judge."))
    assert found.memory == "Mrs. Moy came in. Mrs. Moy's hat was wet. “She is late,” said the judge."


def test_a_gist_of_a_titled_passage_knows_what_it_is_about():
    found = write_gist(PassageIn(text="It was built in 1843. It was clear that it leaked.", title="Tide House"))
    assert found.memory == "Tide House was built in 1843. It was clear that it leaked."
