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
    assert set(private_lm.__all__) == {"accountant", "certify", "dp_tokenizer", "generate", "init", "plan", "run", "train", "verify"}


def test_a_typed_program_passes_mypys_strict_mode_and_a_wrong_one_does_not(tmp_path):
    program = """
import numpy
import pyarrow
import private_lm
from private_lm.accountant import CertifiedAccountant, get_noise_multiplier

table = pyarrow.table({"text": ["a", "b"]})
proposal = private_lm.init(table, epsilon=8.0, units=1000, task="language-model", text_field="text")
done = private_lm.train(proposal.plan, "runs/a", data=[{"text": "a"}], progress=lambda figures: print(figures.steps_done))
upper: float = done.epsilon.upper if done.epsilon else 0.0
one: str = private_lm.generate(done.run, "a", tokens=5)
many: list[str] = private_lm.generate(done.run, ["a", "b"], temperature=0.5)
noise: float = get_noise_multiplier(target_epsilon=3.0, target_delta=1e-5, sample_rate=0.01, steps=100)
spent: float = CertifiedAccountant().get_epsilon(1e-5)
loss: "numpy.typing.NDArray[numpy.float64]" = private_lm.run.metrics("runs/a")["evaluation_nll"]
"""
    for name, text, fails in [("right", program, False), ("wrong", program + 'private_lm.init(table, epsilom=8.0)\n', True)]:
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        checked = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", str(path)],
            capture_output=True, text=True, cwd=tmp_path,
        )
        assert (checked.returncode != 0) == fails, checked.stdout + checked.stderr
        assert ("epsilom" in checked.stdout) == fails, checked.stdout
