"""explorer.html is built from the encoder's numbers and a runtime that matches its published hash."""

import io
import tarfile
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from explorer import explorer, npm
from publish import website
from tests.helpers import PAIR
from utils.support.comparisons import largest_difference

PACKAGE = npm.Package("a-package", "1.0.0", "")


def stations(encoder, batch) -> dict[str, torch.Tensor]:
    with torch.inference_mode():
        outputs = explorer.EncoderParts(encoder)(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
    return dict(zip(explorer.OUTPUTS, outputs, strict=True))


def test_stations_equal_the_official_model(encoder, reference, tokenizer):
    """This includes tensors that the encoder does not return: the stream after attention, and values."""
    batch, captured = tokenizer(*PAIR), {"attended": [], "values": []}
    handles = [
        hooked
        for layer in reference.encoder.layer
        for hooked in (
            layer.attention.output.register_forward_hook(lambda *call: captured["attended"].append(call[-1])),
            layer.attention.self.value.register_forward_hook(lambda *call: captured["values"].append(call[-1])),
        )
    ]
    with torch.inference_mode():
        official = reference(**batch, output_attentions=True, output_hidden_states=True)
    for handle in handles:
        handle.remove()
    found = stations(encoder, batch)
    assert largest_difference(found["attended"], torch.stack(captured["attended"])) <= 1e-5
    assert largest_difference(found["values"].transpose(2, 3).flatten(3), torch.stack(captured["values"])) <= 1e-5
    assert largest_difference(found["hidden_states"], torch.stack(official.hidden_states)) <= 1e-5
    assert largest_difference(found["attentions"], torch.stack(official.attentions)) <= 1e-5


def fake_package(folder, content: bytes) -> None:
    with tarfile.open(folder / "a-package-1.0.0.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("package/a.js")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


def test_npm_package_must_match_its_published_hash(tmp_path):
    fake_package(tmp_path, b"real")
    path = tmp_path / "a-package-1.0.0.tgz"
    published = PACKAGE._replace(integrity=npm.digest(path.read_bytes()))
    assert npm.fetch(published, tmp_path) == path
    assert npm.read_member(path, "a.js") == b"real"
    fake_package(tmp_path, b"altered")
    with pytest.raises(ValueError, match=r"a-package-1\.0\.0\.tgz is not a-package 1\.0\.0 as published: delete it"):
        npm.fetch(published, tmp_path)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (None, f"npm is not installed: {npm.INSTALL_NPM}"),
        ("/bin/npm", "npm cannot download onnxruntime-web 1.30.0 (npm error no network)"),
    ],
)
def test_site_omits_explorer_if_npm_fails(tmp_path, monkeypatch, capsys, program, reason):
    failed = SimpleNamespace(returncode=1, stdout="", stderr="npm error no network\n")
    monkeypatch.setattr(npm.shutil, "which", lambda name: program)
    monkeypatch.setattr(npm.subprocess, "run", lambda *command, **options: failed)
    monkeypatch.setattr(website, "BUILD", tmp_path / "build")
    website.make_npm_pages([], tmp_path / "explorer")
    lines = capsys.readouterr().out.splitlines()
    other = reason.replace("onnxruntime-web 1.30.0", "pyodide 314.0.7")
    assert lines == [f"type_bert.html is left out: {other}", f"explorer.html is left out: {reason}"]
    assert not [*(tmp_path / "explorer").glob("*.html")]


@pytest.mark.parametrize("built", website.NPM_PAGES)
def test_start_page_links_only_to_pages_that_are_built(tmp_path, built):
    pytest.importorskip("sphinx_revealjs", reason="make slides installs what this needs: requirements-dev.txt")
    (tmp_path / "README.md").write_text("# Title\n\ntext\n", "utf-8")
    (tmp_path / "images").mkdir()
    website.write_sources([], tmp_path / "README.md", tmp_path / "source", tmp_path / "images", [built])
    start = (tmp_path / "source" / "index.md").read_text("utf-8")
    assert [name for name in website.NPM_PAGES if f'href="{name}"' in start] == [built]
    assert start.startswith("# Title\n")
