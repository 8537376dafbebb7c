"""The operator's filters: read from a folder, tested, and refused with the file's name and the reason."""
import pytest

from gateway.config.load import ConfigError, load
from tests.unit.config.files import PROVIDER, good

PACK = "name = 'mine'\ncommands = ['^deploy']\ndrop = ['^step']\n[[tests]]\ncommand = 'deploy'\ninput = \"step\\nend\"\noutput = '''\n{}\n'''\n"
GOOD = PACK.format("end\n[1 lines of no interest left out]")


def loaded(tmp_path, mode="standard", **files):
    (tmp_path / "filters").mkdir()
    for name, text in files.items():
        (tmp_path / "filters" / name.replace("_", ".")).write_text(text)
    file = tmp_path / "gateway.toml"
    file.write_text(f'[compression]\nmode = "{mode}"\nfilters = "filters"\n' + PROVIDER)
    return load(file, {})


def told(tmp_path, **files):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, **files)
    ((path, message),) = caught.value.problems
    assert path == "compression.filters"
    return message


def test_the_operators_filters_are_tried_before_ours(tmp_path):
    names = [one.name for one in loaded(tmp_path, mine_toml=GOOD, notes_txt="no filter").filters]
    assert names[:2] == ["mine", "git-status"]


def test_one_with_the_name_of_ours_takes_its_place(tmp_path):
    filters = loaded(tmp_path, mine_toml=GOOD.replace("mine", "pytest")).filters
    assert [one.name for one in filters].count("pytest") == 1 and filters[0].commands.pattern == "(?:^deploy)"


def test_nothing_is_kept_of_them_while_compression_is_off_but_they_are_checked(tmp_path):
    assert loaded(tmp_path, mode="off", mine_toml=GOOD).filters == () == good().filters


def test_a_filter_that_fails_its_tests_is_refused_with_what_came_out(tmp_path):
    assert told(tmp_path, mine_toml=PACK.format("end")) == "mine.toml: tests[0] gives 'end\\n[1 lines of no interest left out]'"


def test_every_broken_file_is_named(tmp_path):
    message = told(tmp_path, a_toml="name =", b_json="{", c_toml=GOOD, d_toml=GOOD, e_toml="#" * 70_000)
    assert [part.split(":")[0] for part in message.split("; ")] == ["a.toml", "b.json", "d.toml", "e.toml"]


def test_there_are_at_most_a_hundred(tmp_path):
    assert "more than 100" in told(tmp_path, **{f"f{i}_toml": GOOD for i in range(101)})


def test_a_folder_that_is_missing_is_told(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text('[compression]\nfilters = "nowhere"\n' + PROVIDER)
    with pytest.raises(ConfigError, match="compression.filters: nowhere is no folder"):
        load(file, {})
