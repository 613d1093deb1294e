"""Views of any transformers model: families that are read, families that are refused, and a model left as it was."""

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModel, BertTokenizer, PreTrainedTokenizer, PreTrainedTokenizerFast

from tests.families import ENCODER, FAMILIES, GROUPED, TWO_SIDES, WIDER, byte_level, sharp_model, word_level
from tests.helpers import data_of, enable_ctrl_c, names
from utils.modernbert import ModernEncoder
from views import any_model, head_view, model_view, neuron_view
from views.__main__ import main
from views.models import read_heads, read_two_sides, readable_tokens, visible

WORDS = {f"w{number}": number for number in range(100)}
TEXT = "w5 w6 w7 w8 w9 w10 w11 w12"
REFUSED = {
    "mpnet": (ENCODER, "queries and keys of a mpnet cannot be read: 0 of its 2 layers"),
    "gemma2": (WIDER, "needs plain softmax attention, but gemma2 soft-caps its scores"),
    "gpt_oss": (
        WIDER | {"num_local_experts": 2, "num_experts_per_tok": 1},
        "needs plain softmax attention, but gpt_oss gives attention sinks a share",
    ),
}


@pytest.fixture(scope="module")
def tokenizer():
    return word_level(WORDS)


def ids_of(text: str) -> torch.Tensor:
    return torch.tensor([[WORDS[word] for word in text.split()]])


def own_weights(model, **inputs):
    """The weights as the library itself gives them: (L, A, S, S)."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return torch.cat(model(**inputs, output_attentions=True).attentions)


def assert_softmax_of_queries_and_keys(heads, wanted) -> None:
    """The softmax of what a view shows is the model's, and is not without its scale, nor without its mask."""
    D = heads.queries.size(-1)
    scores = heads.queries @ heads.keys.mT / D**0.5
    masked = scores.masked_fill(heads.hidden, -torch.inf)
    torch.testing.assert_close(masked.softmax(dim=-1), wanted, atol=1e-6, rtol=0)
    assert ((masked * D**0.5).softmax(dim=-1) - wanted).abs().max() > 0.25
    if heads.hidden.any():
        assert (scores.softmax(dim=-1) - wanted).abs().max() > 0.9


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_softmax_of_queries_and_keys(family, tokenizer):
    model = sharp_model(family, FAMILIES[family])
    heads = read_heads(model, tokenizer, TEXT)
    wanted = own_weights(model, input_ids=ids_of(TEXT))
    torch.testing.assert_close(heads.weights, wanted, atol=1e-6, rtol=0)
    assert_softmax_of_queries_and_keys(heads, wanted)
    panel = data_of(neuron_view(model, tokenizer, TEXT, layer=1, head=3))["attention"]["all"]
    assert (panel["attn"] - wanted).abs().max() <= 0.5001e-4
    assert panel["left_text"] == TEXT.split()


@pytest.mark.parametrize("family", REFUSED)
def test_unsupported_neuron_views_raise_and_weights_are_drawn(family, tokenizer):
    settings, message = REFUSED[family]
    model = sharp_model(family, settings)
    with pytest.raises(ValueError, match=f"(?s){message}.*: use head_view or model_view"):
        neuron_view(model, tokenizer, TEXT)
    panel = data_of(head_view(model, tokenizer, TEXT))["attention"]["all"]
    assert (panel["attn"] - own_weights(model, input_ids=ids_of(TEXT))).abs().max() <= 0.5001e-4


def test_weights_that_differ_from_softmax_raise(tokenizer, monkeypatch):
    """The model's own weights decide, whatever a layer says that it does."""
    from transformers.models.bert import modeling_bert

    def twice_as_sharp(module, query, key, value, mask, scaling=None, **_):
        weights = (2 * scaling * query @ key.mT).softmax(dim=-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(modeling_bert, "eager_attention_forward", twice_as_sharp)
    model = sharp_model("bert", ENCODER)
    with pytest.raises(ValueError, match=r"the weights of bert differ from it by 0.\d+: use"):
        neuron_view(model, tokenizer, TEXT)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("longformer", ENCODER | {"attention_window": 4}, "a longformer have 8 × 5 positions for 8 × 8 tokens"),
        ("fnet", ENCODER, "a fnet returns no attention weights"),
        ("canine", ENCODER, "a canine has no plain table of token embeddings"),
        ("vit", ENCODER | {"image_size": 32, "patch_size": 8}, "a vit reads no token ids .* pass its pixel_values"),
    ],
)
def test_models_without_drawable_weights_raise(family, settings, message, tokenizer):
    model = sharp_model(family, settings)
    for draw in (head_view, model_view, neuron_view):
        with pytest.raises(ValueError, match=f"{message}"):
            draw(model, tokenizer, TEXT)


@pytest.mark.parametrize("family", TWO_SIDES)
@pytest.mark.parametrize("draw", [head_view, model_view])
def test_encoder_decoder_has_three_attentions(family, draw, tokenizer):
    model = sharp_model(family, TWO_SIDES[family])
    panels = data_of(draw(model, tokenizer, TEXT, "w1 w2 w3"))["attention"]
    assert list(panels) == ["encoder", "decoder", "cross"]
    assert panels["cross"]["left_text"] == ["w1", "w2", "w3"]
    assert panels["cross"]["right_text"] == TEXT.split()
    model.set_attn_implementation("eager")
    ids = [ids_of(text) for text in (TEXT, "w1 w2 w3")]
    with torch.no_grad():
        output = model(input_ids=ids[0], decoder_input_ids=ids[1], output_attentions=True)
    assert (panels["cross"]["attn"] - torch.cat(output.cross_attentions)).abs().max() <= 0.5001e-4
    with pytest.raises(
        ValueError, match=f"a {family} reads one text and writes another: pass the second as sentence_b"
    ):
        draw(model, tokenizer, TEXT)
    with pytest.raises(ValueError, match=f"a {family} has an encoder and a decoder: pass one of them"):
        neuron_view(model, tokenizer, TEXT)


def test_one_side_of_an_encoder_decoder(tokenizer):
    bart, t5 = (sharp_model(family, settings) for family, settings in reversed(TWO_SIDES.items()))
    for side in (bart.get_encoder(), bart.get_decoder()):
        assert data_of(neuron_view(side, tokenizer, TEXT))["attention"]["all"]["left_text"] == TEXT.split()
        assert_softmax_of_queries_and_keys(read_heads(side, tokenizer, TEXT), own_weights(side, input_ids=ids_of(TEXT)))
    with pytest.raises(ValueError, match="but t5 adds a bias for each distance"):
        neuron_view(t5.get_encoder(), tokenizer, TEXT)


def test_an_image_is_read_as_patches():
    vit = sharp_model("vit", ENCODER | {"image_size": 32, "patch_size": 8})
    pixels = torch.randn(1, 3, 32, 32)
    for draw in (head_view, model_view, neuron_view):
        panel = data_of(draw(vit, None, pixels))["attention"]["all"]
        assert panel["left_text"][:3] == ["[CLS]", "0,0", "0,1"]
        assert panel["left_text"][-1] == "3,3"
        assert (panel["attn"] - own_weights(vit, pixel_values=pixels)).abs().max() <= 0.5001e-4
    assert_softmax_of_queries_and_keys(read_heads(vit, None, pixels), own_weights(vit, pixel_values=pixels))
    with pytest.raises(ValueError, match=r"must have the shape \(1, channels, height, width\), got \(3, 32, 32\)"):
        neuron_view(vit, None, pixels[0])
    with pytest.raises(ValueError, match="a bert reads no square patches of an image: pass a text"):
        head_view(sharp_model("bert", ENCODER), None, pixels)


@pytest.mark.parametrize("family", ["deit", "dinov2_with_registers", "siglip_vision_model"])
def test_tokens_before_patches_are_named(family):
    model = sharp_model(family, ENCODER | {"image_size": 32, "patch_size": 8})
    before = {"deit": ["[CLS]", "[1]"], "siglip_vision_model": []}.get(family, ["[CLS]", "[1]", "[2]", "[3]", "[4]"])
    tokens = read_heads(model, None, torch.randn(1, 3, 32, 32)).tokens
    assert tokens == [*before, *(f"{row},{column}" for row in range(4) for column in range(4))]


def state_of(model) -> tuple:
    """What a view may not change of a model."""
    parts = [part for part in model.modules() if hasattr(part, "config")]
    return (
        [part.config._attn_implementation for part in parts],
        [module.training for module in model.modules()],
        [list(module._forward_hooks) + list(module._forward_pre_hooks) for module in model.modules()],
        [sorted(vars(module)) for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
    )


def trained_in_part(family: str):
    """Return a model in training mode, but for its first part, with attention of another kind than views use."""
    model = sharp_model(family, (FAMILIES | TWO_SIDES)[family]).train()
    next(model.children()).eval()
    model.set_attn_implementation("sdpa")
    return model


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_views_leave_the_model_unchanged(family, tokenizer):
    model = trained_in_part(family)
    before = state_of(model)
    draw, pair = (head_view, ["w1"]) if family == "t5" else (neuron_view, [])
    draw(model, tokenizer, TEXT, *pair)
    assert state_of(model) == before


@pytest.fixture
def ctrl_c_enabled():
    before = enable_ctrl_c()
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_enabled")
@pytest.mark.parametrize("implementation", ["eager", any_model.RECORDER])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_view_that_is_stopped_leaves_the_model_unchanged(error, implementation, tokenizer):
    """Also by an interrupt in the middle of a layer, in the first of the two readings or in the second."""
    model = trained_in_part("llama")
    before, stopped = state_of(model), []

    def fail(*_):
        if model.config._attn_implementation == implementation:
            stopped.append(error)
            if error is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            raise RuntimeError("stop")

    layer = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][3]
    hook = layer.register_forward_hook(fail)
    with pytest.raises(error):
        neuron_view(model, tokenizer, TEXT)
    hook.remove()
    assert stopped == [error]
    assert state_of(model) == before
    assert not any_model.CALLS
    assert torch.is_grad_enabled()


@pytest.fixture
def threads(monkeypatch):
    """Four threads that take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with ThreadPoolExecutor(4) as pool:
        yield pool
    sys.setswitchinterval(before)


def test_views_in_threads_have_all_layers(tokenizer, threads):
    model = sharp_model("gpt2", FAMILIES["gpt2"]).train()
    before, draws = state_of(model), (head_view, neuron_view)
    wanted = [data_of(draw(model, tokenizer, TEXT)) for draw in draws]
    drawn = list(threads.map(lambda draw: data_of(draw(model, tokenizer, TEXT)), draws * 8))
    for number, found in enumerate(drawn):
        weights = wanted[number % 2]["attention"]["all"]["attn"]
        torch.testing.assert_close(found["attention"]["all"]["attn"], weights)
    assert state_of(model) == before


def test_other_threads_may_call_a_model_that_is_read(tokenizer, threads):
    """They get their own results, and no view counts theirs."""
    model, done = sharp_model("bert", ENCODER), Event()
    wanted = read_heads(model, tokenizer, TEXT)

    @torch.no_grad()
    def states() -> torch.Tensor:
        return model(ids_of(TEXT)).last_hidden_state

    def call() -> list[torch.Tensor]:
        found = []
        while not done.is_set():
            found.append(states())
        return found

    callers = [threads.submit(call) for _ in range(2)]
    try:
        for _ in range(5):
            found = read_heads(model, tokenizer, TEXT)
            torch.testing.assert_close(found.weights, wanted.weights)
            torch.testing.assert_close(found.queries, wanted.queries)
            assert len(found.outputs) == 2
    finally:
        done.set()
    plain = states()
    for caller in callers:
        for found in caller.result():
            torch.testing.assert_close(found, plain)


@pytest.mark.parametrize(("family", "name"), [("bert", "num_hidden_layers"), ("t5", "num_decoder_layers")])
def test_weights_of_some_layers_only_are_refused(family, name, tokenizer):
    model = sharp_model(family, (FAMILIES | TWO_SIDES)[family])
    setattr(model.config, name, 3)
    with pytest.raises(
        ValueError,
        match=f"a {family} returns the attention weights of 2 of its 3 layers.*: do not call the model in another",
    ):
        head_view(model, tokenizer, TEXT, *(["w1"] if family == "t5" else []))


def test_modern_encoder_is_read_after_rotation(tokenizer):
    official = sharp_model("modernbert", FAMILIES["modernbert"])
    ours = ModernEncoder(official.config)
    ours.load_weights(official.state_dict())
    wanted, found = (read_heads(model, tokenizer, TEXT) for model in (official, ours))
    for name in ("weights", "queries", "keys"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), atol=1e-5, rtol=0)
    assert not any("project" in vars(layer.attention) for layer in ours.layers)


def test_tokenizer_of_another_model_raises(tokenizer):
    small = sharp_model("bert", ENCODER | {"vocab_size": 99})
    with pytest.raises(
        ValueError, match="ids up to 99, but the model has 99 token embeddings: load both from the same checkpoint"
    ):
        head_view(small, tokenizer, TEXT)
    few = sharp_model("bert", ENCODER | {"vocab_size": 201})  # as where a folder has no tokenizer's files
    with pytest.raises(
        ValueError, match="ids up to 99, but the model has 201 token embeddings: load both from the same checkpoint"
    ):
        head_view(few, tokenizer, TEXT)
    head_view(sharp_model("bert", ENCODER | {"vocab_size": 128}), tokenizer, TEXT)  # rows to spare


def test_added_token_needs_embedding_only_if_used():
    bytewise = byte_level(["the cat"] * 3)
    model = sharp_model("gpt2", FAMILIES["gpt2"] | {"vocab_size": len(bytewise)})
    bytewise.add_special_tokens({"pad_token": "[PAD]"})
    assert data_of(head_view(model, bytewise, "the cat"))["attention"]["all"]["left_text"][0] == "the"
    with pytest.raises(ValueError, match=r"token '\[PAD\]' has the id \d+, .*model.resize_token_embeddings\(len"):
        head_view(model, bytewise, "the [PAD]")
    model.resize_token_embeddings(len(bytewise))
    head_view(model, bytewise, "the [PAD]")


class Spoken(PreTrainedTokenizer):
    """A tokenizer in Python, of words, as RoBERTa's relatives have it: no .vocab, and one type of tokens."""

    def __init__(self, **options):
        self.prefix = "w"
        super().__init__(unk_token="w0", **options)

    vocab_size = 100

    def get_vocab(self):
        return WORDS

    def _switch_to_target_mode(self):
        self.prefix = "w3"

    def _switch_to_input_mode(self):
        self.prefix = "w"

    def _tokenize(self, text, **_):
        return [word.replace("w", self.prefix) for word in text.split()]

    def _convert_token_to_id(self, token):
        return WORDS[token]

    def _convert_id_to_token(self, index):
        return f"w{index}"

    def build_inputs_with_special_tokens(self, ids, other=None):
        return [1, *ids, 1] if other is None else [1, *ids, 1, 1, *other, 1]

    def create_token_type_ids_from_sequences(self, ids, other=None):
        return [0] * len(self.build_inputs_with_special_tokens(ids, other))


def test_slow_tokenizer_is_read():
    bert = sharp_model("roberta", FAMILIES["roberta"])
    found = read_heads(bert, Spoken(), "w5 w6 w5", "w5 w6")
    assert found.tokens == ["w1", "w5", "w6", "w5", "w1", "w1", "w5", "w6", "w1"]
    assert found.sentence_b_start == 6
    wanted = own_weights(bert, input_ids=ids_of(" ".join(found.tokens)))
    torch.testing.assert_close(found.weights, wanted, atol=1e-6, rtol=0)
    sides = read_two_sides(sharp_model("bart", TWO_SIDES["bart"]), Spoken(), "w5", "w6")
    assert sides["encoder_tokens"] == ["w1", "w5", "w1"]
    assert sides["decoder_tokens"] == ["w1", "w36", "w1"]


def test_empty_sentence_b_raises(tokenizer):
    with pytest.raises(ValueError, match=r"sentence_b=.* has no token: pass a text of at least one word"):
        head_view(sharp_model("bert", ENCODER), tokenizer, TEXT, " ")


def test_wordpiece_letter_is_not_a_space_mark():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Ġ", "##orġ"]
    maltese = BertTokenizer({token: number for number, token in enumerate(tokens)}, do_lower_case=False)
    model = sharp_model("bert", ENCODER | {"vocab_size": 7})
    assert read_heads(model, maltese, "Ġorġ").tokens == ["[CLS]", "Ġ", "##orġ", "[SEP]"]
    assert data_of(head_view(model, maltese, "Ġorġ"))["attention"]["all"]["left_text"][1:3] == ["Ġ", "##orġ"]


def test_wrapped_model_is_read(tokenizer):
    bert = sharp_model("bert", ENCODER)
    wanted = data_of(head_view(bert, tokenizer, TEXT))["attention"]["all"]["attn"]
    holder = torch.nn.DataParallel(bert)
    assert data_of(head_view(holder, tokenizer, TEXT))["attention"]["all"]["attn"].equal(wanted)
    neuron_view(holder, tokenizer, TEXT)


def test_byte_tokens_are_shown_as_text():
    bytewise = byte_level(["the cat sat on the mat"] * 3)
    tokens = readable_tokens(bytewise, bytewise("the café 🙂</script>", return_tensors="pt"))
    assert tokens[0] == "the"
    assert tokens[tokens.index("f") + 1 :][:2] == ["é·1", "é·2"]
    assert [token for token in tokens if "🙂" in token] == [f"🙂·{part}" for part in range(1, 5)]
    assert not any("Ã" in token or "Ġ" in token for token in tokens)


def test_sentencepiece_marks_and_bytes(tokenizer):
    pieces = ["<unk>", "▁", "▁I", "▁call", "ed", ".", *(f"<0x{byte:02X}>" for byte in range(256))]
    plain = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0, byte_fallback=True))
    plain.pre_tokenizer = pre_tokenizers.Metaspace()
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    plain.decoder = decoders.Sequence(parts)
    fast = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="<unk>")
    model = sharp_model("llama", GROUPED | {"vocab_size": len(fast)})
    panel = data_of(neuron_view(model, fast, "I called\n é"))["attention"]["all"]
    assert [token.strip() for token in panel["left_text"]] == ["I", "call", "ed", "\\n", "␣", "é·1", "é·2"]


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\u202eabc", "\\u202eabc"),  # which turns what follows
        ("\u200b", "\\u200b"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("  ", "␣␣"),
        ("▁", "␣"),
        ("שלום", "שלום"),
    ],
)
def test_invisible_characters_are_escaped(token, shown):
    assert visible(token) == shown


class Padding(PreTrainedTokenizerFast):
    """A tokenizer that pads without being asked, as some that are saved do."""

    def __call__(self, *texts, **options):
        return super().__call__(*texts, **options, padding="max_length", max_length=11)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", ["bert", "llama", "gpt2"])
def test_padding_is_masked_as_in_the_model(family, side, tokenizer):
    padding = Padding(tokenizer_object=tokenizer.backend_tokenizer, unk_token="w0", pad_token="w0", padding_side=side)
    model = sharp_model(family, FAMILIES[family])
    panel = data_of(neuron_view(model, padding, TEXT))["attention"]["all"]
    mask = torch.tensor([[1] * 8 + [0] * 3])
    ids = torch.cat([ids_of(TEXT), torch.zeros(1, 3, dtype=torch.long)], dim=1)
    if side == "left":
        mask, ids = mask.flip(1), ids.roll(3, 1)
    wanted = own_weights(model, input_ids=ids, attention_mask=mask)
    assert (panel["attn"] - wanted).abs().max() <= 0.5001e-4
    hidden = (mask == 0).expand(11, 11)
    if family != "bert":
        hidden = hidden | torch.ones(11, 11).triu(1).bool()
    seen_by_none = hidden.all(dim=1)  # a row of padding on the left, which the model spreads evenly
    assert seen_by_none.sum() == (3 if side == "left" and family != "bert" else 0)
    assert panel["attn"].signbit().equal((hidden & ~seen_by_none[:, None]).expand(2, 4, 11, 11))


def test_tiny_weight_is_not_marked_as_masked(tokenizer):
    model = sharp_model("bert", ENCODER | {"num_attention_heads": 1})
    with torch.no_grad():
        model.encoder.layer[0].attention.self.query.weight *= 200
    panel = data_of(neuron_view(model, tokenizer, TEXT))["attention"]["all"]["attn"]
    assert (panel[0] == 0).any()
    assert not panel.signbit().any()


def test_long_and_empty_texts_raise(tokenizer):
    llama = sharp_model("llama", GROUPED)
    long = neuron_view(llama, tokenizer, " ".join([TEXT] * 40))
    assert len(data_of(long)["attention"]["all"]["left_text"]) == 320
    limits = {"bert": {"max_position_embeddings": 16}, "roberta": {"max_position_embeddings": 18}}
    for family, size in (limits | {"gpt2": {"n_positions": 16}}).items():
        model = sharp_model(family, FAMILIES[family] | size)
        head_view(model, tokenizer, " ".join(["w1"] * 16))
        with pytest.raises(
            ValueError, match=r"the text has 17 tokens, but the model has 16 positions .*: shorten the text"
        ):
            head_view(model, tokenizer, " ".join(["w1"] * 17))
    with pytest.raises(ValueError, match="sentence_a has no token: pass a text of at least one word"):
        neuron_view(llama, tokenizer, "")
    with pytest.raises(ValueError, match="sentence_b has no token: pass a text of at least one word"):
        head_view(sharp_model("bart", TWO_SIDES["bart"]), tokenizer, TEXT, "")


@pytest.fixture
def folder(tmp_path, monkeypatch, tokenizer):
    """A folder with a LLaMA, which is the current folder."""
    sharp_model("llama", GROUPED).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


LLAMA = ["--model", "model"]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (["--layer", "1", "--head", "3"], "Head view of"),  # the head view is the default
        (["model"], "Model view of"),
        (["neuron", "--head", "2"], "Neuron view of"),
        (["sentence", "--token", "w6", "--other", "w5 w3", "--other", "w5 w4"], '"w4"'),
    ],
)
def test_command_line_saves_each_view(folder, capsys, arguments, title):
    main([*arguments, "w5 w6", *LLAMA, "--save", "page.html"])
    assert "page.html" in capsys.readouterr().out
    assert title in (folder / "page.html").read_text("utf-8")


def test_command_line_draws_a_path(folder):
    main(["path", "Time flies.", "--word", "flies"])
    assert "With [MASK] for “flies”, no word turns more than “time”: " in (folder / "view.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([TEXT, "--model", "no_such_folder"], "no_such_folder"),
        ([" ", *LLAMA], "must not be empty"),
        ([TEXT, *LLAMA, "--layer", "9"], "layer must be one of the layers shown, [0, 1], got 9"),
        ([TEXT, *LLAMA, "--save", "."], ". is a folder, not a file: choose another path"),
        (["model", TEXT, "--layer", "1"], "the model view does not take --layer 1: see python -m views model --help"),
        ([TEXT, "--other", "w2"], "see python -m views head --help, or name another view first, head,"),
        (["sentence", TEXT, *LLAMA, "--other", "w2", "--other-model", "model"], "leave one of them out"),
    ],
)
def test_command_line_refuses_and_writes_nothing(folder, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert names(folder) == ["model"]


def test_command_line_asks_for_the_second_text(tmp_path, capsys, tokenizer):
    for part in (sharp_model("t5", TWO_SIDES["t5"]), tokenizer):
        part.save_pretrained(tmp_path)
    with pytest.raises(SystemExit):
        main([TEXT, "--model", str(tmp_path)])
    assert "pass the second with --pair" in capsys.readouterr().err


def test_inputs_besides_text_are_refused(tokenizer):
    """Without its boxes the weights of LayoutLM would be those of another page."""
    model = AutoModel.from_config(AutoConfig.for_model("layoutlm", **ENCODER, max_2d_position_embeddings=64)).eval()
    for view in (head_view, neuron_view):
        words = r"a layoutlm also reads the boxes of words on a page \(bbox\), which a text does not give: call the"
        with pytest.raises(ValueError, match=words):
            view(model, tokenizer, TEXT)
