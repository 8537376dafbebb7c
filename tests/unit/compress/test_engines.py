"""Each engine leaves out what it is for, and nothing else."""
import json

import pytest

from gateway.compress import aging, dedup, jsoncompact, lite, read_lifecycle
from gateway.compress.words import OMITTED
from tests.unit.compress.talks import LINES, answer, bash, body, called, compressed, stage, user

SOURCE = "\n".join(f"def step_{i}(value):\n    return value + {i}\n" for i in range(12))
RECORDS = [{"id": i, "name": f"n{i}", "price": float(i), "tags": ["a", i]} for i in range(10)]


# ---------------------------------------------------------------- dedup
def test_a_block_that_was_said_before_is_told_by_its_first_words():
    texts, _ = compressed(body(user(), bash("a", "./one", LINES), bash("b", "./two", "first\n\n" + LINES + "\n\nlast"), user()))
    assert texts[1] == LINES
    assert texts[2].startswith("first\n\n" + dedup.MARK + "The reader of table red") and texts[2].endswith("last")


def test_what_the_user_writes_is_a_source_and_is_never_changed():
    texts, _ = compressed(body(user(LINES), bash("a", "./one", "x\n\n" + LINES), user(LINES), answer("yes"), user()))
    assert texts[0] == texts[2] == LINES and dedup.MARK in texts[1]


def test_code_is_repeated_whole_or_not_at_all():
    partly = SOURCE + "\n\n\nextra = 1;\nmore = {\n};"
    texts, _ = compressed(body(user(), called("a", "Read", {"file_path": "a"}, SOURCE), called("b", "Read", {"file_path": "b"}, partly),
                               called("c", "Read", {"file_path": "c"}, SOURCE), user()))
    assert texts[1:3] == [SOURCE, partly] and texts[3].startswith(dedup.MARK)


# ---------------------------------------------------------------- lite
def test_blanks_at_ends_of_lines_and_rows_of_empty_lines_go():
    texts, _ = compressed(body(user(), answer("One.   \n\n\n\nTwo.\n```\nkept   \n\n\n\n```\nThree.\t\n"), user("Two.   \n\n\n\n")))
    assert texts[1] == "One.\n\nTwo.\n```\nkept   \n\n\n\n```\nThree.\n"
    assert texts[2] == "Two.   \n\n\n\n"


def test_a_system_message_that_comes_again_is_told_once():
    system = {"role": "system", "content": LINES}
    texts, _ = compressed(body(system, user(), answer("yes"), system, user()))
    assert texts[0] == LINES and texts[3] == lite.AGAIN


# ---------------------------------------------------------------- jsoncompact
@pytest.mark.parametrize("wrapped", [False, True])
def test_records_of_one_shape_become_a_table_that_can_be_read_back(wrapped):
    text = json.dumps({"total": 10, "items": RECORDS} if wrapped else RECORDS, indent=2)
    texts, outcome = compressed(body(user(), called("a", "list", {}, text), user()))
    assert '[[json-table:v1 columns=["id","name","price","tags"] rows=10]]\n[0,"n0",0.0,["a",0]]\n' in texts[1]
    assert json.loads(jsoncompact.expand(texts[1])) == json.loads(text)
    assert outcome.saved_tokens > 50


@pytest.mark.parametrize("text", [json.dumps(RECORDS[:7]), json.dumps([*RECORDS, {"id": 1}]), json.dumps([*RECORDS, 1]), "[" * 300,
                                  json.dumps(RECORDS)[:-1]])
def test_other_json_stays_as_it_is(text):
    assert compressed(body(user(), called("a", "list", {}, text), user()))[0][1] == text


def test_a_file_of_records_is_no_result_to_be_rewritten():
    text = json.dumps(RECORDS, indent=2)
    assert compressed(body(user(), called("a", "read_file", {"path": "x.json"}, text), user()), "aggressive")[0][1] == text


# ---------------------------------------------------------------- toolfilter
def test_the_output_of_a_known_command_loses_its_noise():
    noise = "\n".join(f"tests/test_a.py::test_{i} PASSED [{i}%]" for i in range(40))
    texts, _ = compressed(body(user(), bash("a", "cd app && pytest -v", noise + "\nE  assert 41 == 42\n1 failed"), user()), "standard")
    assert texts[1] == "E  assert 41 == 42\n1 failed\n[40 lines of no interest left out]"


def test_colours_progress_and_rows_of_the_same_line_go():
    said = "\x1b[32mok\x1b[0m\n" + "10%\r50%\rdone\n" + "waiting for the queue to become ready\n" * 9 + "end"
    texts, _ = compressed(body(user(), bash("a", "./deploy", said), user()), "standard")
    assert texts[1] == "ok\ndone\nwaiting for the queue to become ready\n[the line above 8 more times]\nend"


def test_errors_and_demands_are_never_noise_and_values_are_never_cut():
    middle = [f"plain words about {'ab'[i % 2]}" for i in range(300)]
    middle[100:100] = ["an error happened there", "you must not retry", "port 8431 is taken"]
    texts, _ = compressed(body(user(), bash("a", "./deploy", "\n".join(middle)), user()), "standard")
    lines = texts[1].split("\n")
    assert len(lines) < 130 and {"an error happened there", "you must not retry", "port 8431 is taken"} <= set(lines)
    assert "[60 lines left out]" in lines


def test_the_output_of_a_shell_that_is_a_file_is_not_filtered():
    text = "waiting\n" * 50
    assert compressed(body(user(), bash("a", "cat notes.txt", text), user()), "standard")[0][1] == text


def test_output_that_looks_like_code_is_only_filtered_by_its_command():
    text = "commit 3f2a9b7c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f60\n" + SOURCE
    assert compressed(body(user(), called("a", "fetch", {}, text), user()), "standard")[0][1] == text


# ---------------------------------------------------------------- read-lifecycle
def test_of_a_reading_that_was_repeated_only_what_changed_is_kept():
    newer = SOURCE.replace("value + 3\n", "value + 300\n")
    talk = [user(), called("a", "Read", {"file_path": "a.py"}, SOURCE), called("b", "Read", {"file_path": "a.py"}, newer),
            *[bash(f"c{i}", "true", "fine") for i in range(6)], user()]
    texts, _ = compressed(body(*talk), "standard")
    assert texts[1] == read_lifecycle.REST + "\n    return value + 3" and texts[2] == newer
    assert compressed(body(*talk[:4]), "standard")[0][1] == SOURCE, "too young"


def test_a_file_that_was_written_whole_supersedes_its_reading():
    talk = [user(), bash("a", "cat a.py", SOURCE), called("b", "write_file", {"path": "a.py", "content": SOURCE + "x = 1"}, "written"),
            *[bash(f"c{i}", "true", "fine") for i in range(6)], user()]
    assert compressed(body(*talk), "standard")[0][1] == read_lifecycle.ALL


def test_an_edit_of_one_line_supersedes_nothing():
    talk = [user(), called("a", "Read", {"file_path": "a.py"}, SOURCE),
            called("b", "Edit", {"file_path": "a.py", "old_string": "value + 3", "new_string": "value + 4"}, "edited"),
            *[bash(f"c{i}", "true", "fine") for i in range(6)], user()]
    assert compressed(body(*talk), "standard")[0][1] == SOURCE


# ---------------------------------------------------------------- relevance, aging, hard-budget
FILLER = "Nobody asked about the colour of anything here. " * 90


def test_sentences_of_a_long_past_that_have_nothing_to_do_with_the_question_go():
    past = FILLER + "The reader keeps its place. Port 8431 is taken. You must never drop it."
    texts, _ = compressed(body(user("first"), *[answer(past + f" Part {i}.") for i in range(5)], user("Where does the reader stand?")),
                          "aggressive", engines=())
    assert texts[1].startswith(FILLER)
    texts, outcome = compressed(body(user("first"), *[answer(past + f" Part {i}.") for i in range(5)], user("Where does the reader stand?")),
                                "aggressive")
    assert texts[1] == OMITTED + " The reader keeps its place. Port 8431 is taken. You must never drop it. Part 0."
    assert stage(outcome, "relevance").edits == 5


def test_an_old_turn_keeps_its_intent_its_errors_and_its_values():
    old = ("Looking at it now.\n" + "Some words without weight, and more of them.\n" * 20 + "I will change src/app.py then.\n"
           + "It failed with an error.\nThe limit is 4711 there.\n")
    talk = [user("task"), answer(old)] + [message for i in range(12) for message in (user(f"question {i}"), answer("yes"))] + [user("end")]
    text = compressed(body(*talk), "aggressive")[0][1]
    assert text.startswith(aging.MARK + "\nLooking at it now.\nI will change src/app.py then.\nIt failed with an error.")
    assert "4711" in text and len(text) < 250


def test_a_turn_does_not_age_while_the_conversation_is_short():
    old = "Some words without weight, and more of them.\n" * 20
    talk = [user("task"), answer(old)] + [message for i in range(6) for message in (user(f"question {i}"), answer("yes"))] + [user("end")]
    assert compressed(body(*talk), "aggressive")[0][1] == old


def test_lines_without_a_value_go_until_the_target_is_met():
    talk = [user("task"), bash("a", "./run", "\n".join(f"words about {'abc'[i % 3]}" for i in range(60)) + "\nport 8431"),
            *[answer("fine") for _ in range(12)], user("end")]
    raw = body(*talk)
    texts, _ = compressed(raw, "aggressive", target=len(raw) // 4 - 100)
    assert OMITTED in texts[1] and "port 8431" in texts[1] and len(texts[1]) < 750
    assert compressed(raw, "aggressive", target=len(raw))[0][1] == json.loads(raw)["messages"][2]["content"]
