"""Plans and runs from Python."""

import json
import pathlib

import pytest

from private_lm import plan, run

PRESET = pathlib.Path(__file__).parents[2] / "plan" / "presets" / "quickstart.json"


def test_a_plan_is_certified_from_its_file_and_from_a_dict_alike():
    of_file, of_dict = plan.certify(PRESET), plan.certify(json.loads(PRESET.read_text()))
    assert of_file.sha256 == of_dict.sha256 and of_file.epsilon == of_dict.epsilon
    assert 7.9 < of_file.epsilon.upper <= 8.0 and of_file.delta == 1e-6


def test_a_refused_plan_names_the_field():
    content = json.loads(PRESET.read_text())
    content["privacy"]["delta"] = 1e-3
    with pytest.raises(ValueError, match="privacy.delta"):
        plan.certify(content)
    content["privacy"]["delta"] = float("nan")
    with pytest.raises(ValueError):
        plan.certify(content)
    with pytest.raises(FileNotFoundError, match="no-plan.json"):
        plan.certify("no-plan.json")
    with pytest.raises(TypeError):
        plan.certify(3)


def test_a_folder_that_no_run_wrote_is_not_verified(tmp_path):
    with pytest.raises(FileNotFoundError):
        run.verify(tmp_path / "missing")
    (tmp_path / "model.safetensors").write_text("")
    with pytest.raises((ValueError, OSError, run.VerificationError)) as raised:
        run.verify(tmp_path)
    assert str(tmp_path) in str(raised.value)
