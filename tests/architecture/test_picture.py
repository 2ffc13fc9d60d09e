"""The architecture page shows the packages that there are, and the layers that are enforced."""

from pathlib import Path

from tests.architecture.picture import LAYERS, PAGE, PICTURE, between, layers, picture


def test_the_picture_is_drawn_from_the_code() -> None:
    """`python -m tests.architecture.picture` draws it anew."""
    assert between(PAGE.read_text(), PICTURE) == picture()


def test_the_table_of_layers_is_that_of_the_contract() -> None:
    assert between(PAGE.read_text(), LAYERS) == layers()


def test_a_module_that_is_added_changes_the_picture(tmp_path: Path) -> None:
    """The twin: the same drawing of a tree with one more module is another one."""
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text('"""A room."""\n')
    before = picture(tmp_path)
    (room / "chair.py").write_text('"""A chair."""\n')
    assert before != picture(tmp_path)
    assert "chair" in picture(tmp_path)
