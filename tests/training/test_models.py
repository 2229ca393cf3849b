"""Built-in models against published counts, the TOML form, the import from PyTorch."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import ParameterError, UnknownNameError, UnsupportedError, WorkloadError
from opticcl.training import model_file, torch_model
from opticcl.training.model import Layer, Model
from opticcl.training.model_file import read_model
from opticcl.training.models import MODELS, load_model, model

DOCS = Path(__file__).parents[2] / "docs"

# Parameters and gradient tensors: checked notes on ODDL, section 1.7; torchvision 0.28 (CNNs, tensor for tensor); released
# checkpoints (BERT, GPT-2, BEiT-L); MLPerf (NCF).
PUBLISHED = [
    ("lenet", 61_706, 10),
    ("lenet:variant=imagenet", 5_491_436, 10),
    ("alexnet", 62_378_344, 16),
    ("alexnet:variant=grouped", 60_965_224, 16),
    ("alexnet:variant=one_tower", 61_100_840, 16),
    ("vgg16", 138_357_544, 32),
    ("vgg19", 143_667_240, 38),
    ("resnet50", 25_557_032, 161),
    ("inception_v3", 27_161_264, 292),
    ("inception_v3:auxiliary=no", 23_834_568, 284),
    ("beit_l", 304_430_568, 391),
    ("bert", 336_226_108, 398),
    ("bert:size=base", 110_106_428, 206),
    ("bert:heads=no", 335_141_888, 391),
    ("bert:size=base,heads=no", 109_482_240, 199),
    ("ncf", 31_832_577, 12),
    ("transformer", 124_439_808, 148),
    ("transformer:layers=48,hidden=1600,heads=25", 1_557_611_200, 580),
]


@pytest.mark.parametrize(("name", "parameters", "tensors"), PUBLISHED)
def test_gradient_totals_are_the_published_counts(name, parameters, tensors):
    """To the last parameter."""
    made = model(name)
    assert (made.parameters, sum(len(layer.tensors) for layer in made.layers)) == (parameters, tensors)
    assert made.gradient_bytes == 4 * parameters or made.bytes_per_parameter == 2


@pytest.mark.parametrize(
    ("name", "published", "digits"),
    [
        ("transformer:layers=96,hidden=12288,heads=96,sequence=2048", 175e9, 3),  # GPT-3, Brown et al. 2020
        ("moe", 52e9, 2),  # DeepSpeed-MoE, Rajbhandari et al. 2022, table 1: 1.3B+MoE-128
        ("moe:hidden=1024", 13e9, 2),  # 350M+MoE-128
        ("dlrm:preset=ramp_65536", 41.9e12, 3),  # RAMP table 10
    ],
)
def test_large_models_have_the_printed_sizes(name, published, digits):
    """To the printed digits."""
    assert float(f"{model(name).parameters:.{digits}g}") == published


@pytest.mark.parametrize(
    ("name", "macs"),
    [
        ("vgg16", 15_470_264_320),  # checked notes on ODDL, 4.1: 15.47e9 and 19.63e9; torchvision's counter for all
        ("vgg19", 19_632_062_464),
        ("resnet50", 4_089_184_256),
        ("inception_v3:auxiliary=no", 5_713_216_096),
        ("alexnet:variant=one_tower", 714_188_480),
    ],
)
def test_operations_are_those_of_torchvision(name, macs):
    """Multiply-accumulates of convolutions and fully connected layers."""
    assert model(name).macs == macs


def test_resnet_as_printed_needs_less():
    """He et al. 2016 print 3.8e9 multiply-accumulates, with the stride in the 1x1 convolution."""
    assert model("resnet50:stride=1x1").macs == pytest.approx(3.8e9, rel=0.02)
    assert model("resnet50:stride=1x1").parameters == model("resnet50").parameters


def test_a_transformer_without_vocabulary_is_12_h_squared_a_layer():
    """What RAMP's table 9 counts: 12 h^2 + 13 h a layer, of which 12 h^2 + 7 h can be divided."""
    made = model("transformer:layers=3,hidden=64,heads=8,vocabulary=0")
    assert made.parameters == 3 * (12 * 64**2 + 13 * 64)
    split = sum(size for layer in made.layers for size, part in zip(layer.tensors, layer.split, strict=True) if part)
    assert split == 3 * (12 * 64**2 + 7 * 64)


@pytest.mark.parametrize("name", MODELS.names())
def test_every_model_is_sane(name):
    """Names differ, nothing is negative, something is computed, and the source is told."""
    made = model(name)
    assert made.source
    assert made.sample
    assert made.macs > 0
    assert len({layer.name for layer in made.layers}) == len(made.layers)
    for layer in made.layers:
        assert layer.outputs > 0
        assert layer.activations >= 0
        assert all(size > 0 for size in layer.tensors)
        if layer.kind == "conv":  # a weight is used at least once a sample
            assert layer.macs >= layer.tensors[0]


def test_names_with_parameters_say_them():
    """What differs from the default stands in the name, and the name makes the same model."""
    made = model("bert", size="base")
    assert made.name == "bert:size=base"
    assert model(made.name) == made


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("resnet", UnknownNameError, "resnet50"),
        ("vgg16:depth=3", ParameterError, "depth"),
        ("bert:size=huge", ParameterError, "base, large"),
        ("bert:sequence=513", ParameterError, "1 to 512"),
        ("transformer:layers=0", ParameterError, "layers=0"),
        ("transformer:hidden=100,heads=12", ParameterError, "try heads=10"),
        ("transformer:vocabulary=-1", ParameterError, "vocabulary=0 is not positive"),
        ("moe:experts=2,chosen=3", ParameterError, "choose 2"),
        ("dlrm:rows=0", ParameterError, "rows=0"),
        ("ncf:users=-5", ParameterError, "users=-5"),
        ("transformer:layers=1,hidden=1000000000,heads=1", WorkloadError, r"2\*\*60"),
    ],
)
def test_wrong_models_are_refused(name, error, said):
    """One line with the field, the value and what to try."""
    with pytest.raises(error, match=said) as caught:
        model(name)
    assert str(caught.value).isprintable()


# --- the TOML form ----------------------------------------------------------------------------------------------------

LAYER = '[[layers]]\nname = "a"\nmacs = 10\noutputs = 5\n'


def read(path, text):
    """The model in a file with that text."""
    path.write_text(text)
    return load_model(str(path))


def test_a_model_reads_as_written(tmp_path):
    """Defaults, repeats and kinds."""
    text = 'name = "mine"\nbytes_per_parameter = 2\n' + LAYER + 'tensors = [3, 4]\nkind = "conv"\ncount = 2\n'
    made = read(tmp_path / "m.toml", text)
    assert made == Model(
        "mine",
        str(tmp_path / "m.toml"),
        "a sample",
        (Layer("a1", "conv", (3, 4), 10, 5, 5), Layer("a2", "conv", (3, 4), 10, 5, 5)),
        2,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`name`"),
        ('name = "m"', "`layers`"),
        ('name = "m"\nlayers = []', "at least one layer"),
        ('name = "m"\n' + LAYER + "mcas = 3", r"layers\[0\]: .*`mcas`"),
        ('name = "m"\n[[layers]]\nname = "a"\noutputs = 5', r"layers\[0\]: .*`macs`"),
        ('name = "m"\n' + LAYER + 'kind = "convolution"', r"layers\[0\].kind: "),
        ('name = "m"\n' + LAYER + "tensors = [-1]", "tensors=-1"),
        ('name = "m"\n' + LAYER + f"tensors = [{2**61}]", r"2\*\*60"),
        ('name = "m"\n' + LAYER + "tensors = [5]\nsplit = [true]\nways = 3", "ways=3"),
        ('name = "m"\n' + LAYER + "tensors = [5]\nsplit = [true, true]", "2 entries for 1 tensors"),
        ('name = "m"\n' + LAYER + "count = 0", r"layers\[0\].count"),
        ('name = "m"\n' + LAYER + "count = 1000000000", r"layers\[0\].count"),
        ('name = "m"\n' + LAYER + LAYER, "two layers are named 'a'"),
        ('name = "m"\nbytes_per_parameter = 3\n' + LAYER, "neither 2 nor 4"),
        ('name = "m"\n[[layers]\n', "line 2"),
    ],
)
def test_a_wrong_model_file_is_refused_with_the_field(tmp_path, text, said):
    """One printable line: the file, the field, what is wrong."""
    path = tmp_path / "m.toml"
    with pytest.raises(WorkloadError, match=said) as caught:
        read(path, text)
    assert str(caught.value).isprintable()
    assert str(caught.value).startswith(f"{path}: ")


def test_a_missing_or_huge_file_is_refused(tmp_path, monkeypatch):
    """No such file; more than a model can be."""
    with pytest.raises(WorkloadError, match="no such file"):
        load_model(tmp_path / "none.toml")
    monkeypatch.setattr(model_file, "MAX_FILE_BYTES", 20)
    with pytest.raises(WorkloadError, match="20 bytes"):
        read(tmp_path / "m.toml", 'name = "m"\n' + LAYER)


VALUES = st.one_of(st.integers(), st.booleans(), st.floats(), st.lists(st.integers(), max_size=3))


@examples(60)
@given(macs=VALUES, tensors=VALUES, ways=VALUES, junk=st.text(max_size=20))
def test_any_value_gives_a_model_or_one_line(tmp_path_factory, macs, tensors, ways, junk):
    """Values of every kind, and texts that are no TOML."""
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    layer = f'[[layers]]\nname = "a"\nmacs = {macs}\noutputs = 5\ntensors = {tensors}\nways = {ways}\n'.lower()
    for text in (f'name = "m"\n{layer}', junk, f'name = "m"\n{LAYER}{junk}'):
        path.write_bytes(text.encode("utf-8", "replace"))
        try:
            line = str(read_model(path).parameters)
        except WorkloadError as error:
            line = str(error)
        assert line.isprintable()


def test_the_form_in_the_docstring_and_the_page_read(tmp_path):
    """What the documentation shows is accepted, and can be divided."""
    docstring = "\n".join(model_file.__doc__.splitlines()[2:])
    page = (DOCS / "training.md").read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
    for text in (docstring, page):
        made = read(tmp_path / "m.toml", text)
        assert made.layers[-1].kind == "attention"
        assert made.layers[-1].ways == 16


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def test_without_torch_the_command_that_installs_it_is_told(monkeypatch):
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'opticcl\[torch\]'"):
        torch_model.model_from_torch(None, (3, 224, 224))


def test_a_module_is_imported_without_running():
    """Tensors in their order, operations, outputs; nothing is counted twice inside lists of modules."""
    torch = pytest.importorskip("torch", reason="the extra torch is not installed: pip install 'opticcl[torch]'")
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 16, 5)
    )
    made = torch_model.model_from_torch(net, (3, 4, 4), name="net")
    assert [(layer.kind, layer.tensors) for layer in made.layers] == [
        ("conv", (216,)),
        ("norm", (8, 8)),
        ("linear", (640, 5)),
    ]
    assert [layer.macs for layer in made.layers] == [216 * 16, 0, 640]
    assert [layer.outputs for layer in made.layers] == [128, 128, 5]

    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), 2)
    made = torch_model.model_from_torch(encoder, (10, 64))
    assert made.parameters == sum(p.numel() for p in encoder.parameters())
    assert made.macs == 2 * (10 * 12 * 64**2 + 2 * 10 * 10 * 64)


def test_a_module_that_does_not_take_the_shape_is_refused():
    """With PyTorch's reason in one line."""
    torch = pytest.importorskip("torch", reason="the extra torch is not installed: pip install 'opticcl[torch]'")
    with pytest.raises(WorkloadError, match=r"Linear: cannot be traced with a sample of \(5,\)"):
        torch_model.model_from_torch(torch.nn.Linear(3, 4), (5,))
