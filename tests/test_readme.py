"""What the README prints runs as it is printed."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    """In an empty folder; the plan that it saves can be loaded again."""
    monkeypatch.chdir(tmp_path)
    (snippet,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(snippet, names)
    assert [float(result[0]) for result in names["results"]] == [128.0] * 128
    assert (tmp_path / "plan.parquet").exists()
    assert "fat_tree" in capsys.readouterr().out
