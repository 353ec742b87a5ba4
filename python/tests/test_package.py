"""The package as a whole: its page of examples, its docstrings and its types."""

import contextlib
import doctest
import io
import pathlib
import re
import subprocess
import sys

import private_lm
from private_lm import accountant

FOLDER = pathlib.Path(__file__).parents[1]


def test_every_example_of_the_page_prints_what_its_comment_says(monkeypatch):
    monkeypatch.chdir(FOLDER)
    page = (FOLDER / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 7
    code = "\n".join(blocks)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert printed.getvalue().splitlines() == promised


def test_every_public_function_has_an_example_or_names_its_errors():
    for name in accountant.__all__:
        assert getattr(accountant, name).__doc__, name


def test_figures_of_docstrings_are_right():
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    finder = doctest.DocTestFinder()
    examples = 0
    for name in [None, *accountant.__all__]:
        subject = accountant if name is None else getattr(accountant, name)
        doc = doctest.DocTestParser().get_doctest(subject.__doc__, vars(accountant).copy(), name or "accountant", None, 0)
        examples += len(doc.examples)
        runner.run(doc)
    assert examples > 15
    assert runner.failures == 0


def test_the_types_are_those_of_the_package():
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "private_lm", "--ignore-disjoint-bases"], capture_output=True, text=True, cwd=FOLDER / "tests"
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_package_is_typed_and_all_its_modules_are_named():
    assert (pathlib.Path(private_lm.__file__).parent / "py.typed").is_file()
    assert private_lm.__all__ == ["accountant", "dp_tokenizer", "plan", "run"]
