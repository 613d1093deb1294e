"""Answers readers give to the exercises of notebook 06: right alternatives, and wrong ones with a word of the hint."""

import re

import numpy as np
import torch

from utils.encoder import TransformerEncoder

TABLE = {
    "transformer.layer": "layers",
    "q_lin": "query",
    "k_lin": "key",
    "v_lin": "value",
    "out_lin": "output",
    "sa_layer_norm": "attention_norm",
    "output_layer_norm": "feed_forward_norm",
    "ffn.lin1": "feed_forward.intermediate",
    "ffn.lin2": "feed_forward.output",
    "LayerNorm": "layer_norm",
}


def rename(name, table=TABLE):
    for theirs, ours in table.items():
        name = name.replace(theirs, ours)
    return name


def rename_by_parts(name):
    match = re.fullmatch(r"transformer\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
    if not match:
        return name.replace("LayerNorm", "layer_norm")
    layer, part, kind = match.groups()
    return f"layers.{layer}.{rename(part)}.{kind}"


def rename_but(**changes):
    return lambda name: rename(name, {key: changes.get(key, value) for key, value in TABLE.items()})


def one_digit(name):
    return rename(re.sub(r"transformer\.layer\.(\d)\d*\.", r"layers.\1.", name))


def table_of_layers(layers):
    """A table of all names, layer by layer, in place of a rule."""
    parts = [f"attention.{name}_lin" for name in ("q", "k", "v", "out")]
    parts += ["sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"]
    names = [f"transformer.layer.{layer}.{part}" for layer in layers for part in parts]
    names += [f"embeddings.{name}" for name in ("word_embeddings", "position_embeddings", "LayerNorm")]
    table = {f"{name}.{kind}": rename(f"{name}.{kind}") for name in names for kind in ("weight", "bias")}
    return lambda name: table[name]


def forward(encoder, input_ids, attention_mask, token_type_ids):
    states = [encoder.embeddings(input_ids, token_type_ids)]
    for _ in encoder.layers:
        states.append(encoder.layers[0](states[-1], attention_mask)[0])
    return states


def forward_recursively(encoder, input_ids, attention_mask, token_type_ids):
    def after(rounds, hidden_states):
        if rounds == 0:
            return (hidden_states,)
        return (hidden_states, *after(rounds - 1, encoder.layers[0](hidden_states, attention_mask)[0]))

    return after(len(encoder.layers), encoder.embeddings(input_ids, token_type_ids))


def forward_tensor(*arguments):
    return torch.stack(forward(*arguments))


def forward_yielding(encoder, input_ids, attention_mask, token_type_ids):
    hidden_states, shared = encoder.embeddings(input_ids, token_type_ids), encoder.layers[0]
    yield hidden_states
    for _ in range(len(encoder.layers)):
        hidden_states, _ = shared(hidden_states, attention_mask)
        yield hidden_states


def forward_of_the_class(encoder, input_ids, attention_mask, token_type_ids):
    return encoder(input_ids, attention_mask, token_type_ids, output_hidden_states=True).hidden_states


def forward_own_layers(encoder, ids, mask, types):
    states = [encoder.embeddings(ids, types)]
    for layer in encoder.layers:
        states.append(layer(states[-1], mask)[0])
    return states


def forward_last_layer(encoder, ids, mask, types):
    states = [encoder.embeddings(ids, types)]
    for _ in encoder.layers:
        states.append(encoder.layers[-1](states[-1], mask)[0])
    return states


def forward_parallel(encoder, ids, mask, types):
    start = encoder.embeddings(ids, types)
    return [start, *(encoder.layers[0](start, mask)[0] for _ in encoder.layers)]


def forward_pairs(encoder, ids, mask, types):
    start = encoder.embeddings(ids, types)
    return [start, *(encoder.layers[0](start, mask) for _ in encoder.layers)]


def forward_words(encoder, ids, mask, types):
    states = [encoder.embeddings.word_embeddings(ids)]
    for _ in encoder.layers:
        states.append(encoder.layers[0](states[-1], mask)[0])
    return states


def forward_three(encoder, ids, mask, types):
    return [*forward(encoder, ids, mask, types), *[torch.zeros(0)] * 3][:4]


def forward_without_gradient(*arguments):
    with torch.no_grad():
        return forward(*arguments)


def forward_in_evaluation(encoder, *arguments):
    encoder.eval()
    return forward(encoder, *arguments)


def forward_cut_between_layers(encoder, ids, mask, types):
    states = [encoder.embeddings(ids, types)]
    for _ in encoder.layers:
        states.append(encoder.layers[0](states[-1].detach(), mask)[0])
    return states


def forward_rewiring_the_encoder(encoder, *arguments):
    """Leaves an encoder whose layers are all the first: the next answer must not meet it."""
    encoder.layers = torch.nn.ModuleList([encoder.layers[0]] * len(encoder.layers))
    return forward(encoder, *arguments)


def forward_handing_on_pairs(encoder, ids, mask, types):
    states = [encoder.embeddings(ids, types)]
    for _ in encoder.layers:
        states.append(encoder.layers[0](states[-1], mask))
    return states


def forward_of(find):
    """The finished forward of a class, as a function of the encoder."""
    return lambda encoder, *arguments: (
        find(encoder).forward(encoder, *arguments, output_hidden_states=True).hidden_states
    )


def changed(**how):
    """The right states, changed."""
    return lambda *arguments: how["to"](forward(*arguments))


def trainable(encoder):
    return sum(parameter.numel() for parameter in encoder.parameters() if parameter.requires_grad)


def thaw(encoder, number):
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    for layer in list(encoder.layers)[len(encoder.layers) - number :]:
        for parameter in layer.parameters():
            parameter.requires_grad = True
    return trainable(encoder)


def thaw_by_name(encoder, number):
    count = 0
    for name, parameter in encoder.named_parameters():
        kept = name.startswith("layers.") and int(name.split(".")[1]) >= len(encoder.layers) - number
        parameter.requires_grad_(kept)
        count += parameter.numel() * kept
    return torch.tensor(count)


def thaw_and(change):
    """Right, and then something that nobody asked for."""

    def thaw_last(encoder, number):
        count = thaw(encoder, number)
        change(encoder, number)
        return count

    return thaw_last


@torch.no_grad()
def zero_the_last(encoder, number):
    for parameter in encoder.layers[len(encoder.layers) - number :].parameters():
        parameter.zero_()


def thaw_slice(encoder, number):
    encoder.requires_grad_(False)
    encoder.layers[-number:].requires_grad_(True)
    return trainable(encoder)


def thaw_first(encoder, number):
    encoder.requires_grad_(False)
    encoder.layers[:number].requires_grad_(True)
    return trainable(encoder)


def thaw_no_embeddings(encoder, number):
    encoder.layers[: len(encoder.layers) - number].requires_grad_(False)
    return trainable(encoder)


def thaw_tensors(encoder, number):
    thaw(encoder, number)
    return sum(parameter.requires_grad for parameter in encoder.parameters())


def thaw_nothing(encoder, number):
    encoder.requires_grad_(False)
    return trainable(encoder)


def freeze_the_rest(encoder, number):
    """Freezes what should not learn, and thaws nothing that came frozen."""
    encoder.embeddings.requires_grad_(False)
    encoder.layers[: len(encoder.layers) - number].requires_grad_(False)
    return trainable(encoder)


def thaw_all_layers(encoder, number):
    encoder.embeddings.requires_grad_(False)
    return trainable(encoder)


def count_all(encoder, number):
    thaw(encoder, number)
    return sum(parameter.numel() for parameter in encoder.parameters())


RIGHT = {
    "6.1": [4600, 4600.0, np.int64(4600), torch.tensor(4600), "4,600", "4600 parameters"],
    "6.2": [
        (5, (3, 8, 5, 5)),
        [5.0, [3, 8, 5, 5]],
        (np.int64(5), torch.Size((3, 8, 5, 5))),
        (5, torch.tensor([3, 8, 5, 5])),
        (torch.tensor(5), torch.zeros(3, 8, 5, 5)),
        ("5", "(3, 8, 5, 5)"),
    ],
    "6.3": [rename, rename_by_parts, one_digit, table_of_layers(range(6))],
    "6.4": [forward, forward_recursively, forward_tensor, forward_yielding],
    "6.5": [thaw, thaw_by_name],
}

WRONG = {
    "6.1": [
        (1120, "one layer"),
        (3360, "layers alone"),
        (2360, "parameters of its own"),
        (4400, "positions"),
        (4580, "Twenty are missing"),
        (4480, "LayerNorms of the layers"),
        (4460, "a gain and a shift"),
        (4540, "two LayerNorms"),
        (4360, "biases are missing"),
        (4290, "biases are missing"),
        (4220, "matrices alone"),
        (4270, "output layer"),
        (5920, "number of heads"),
        (7960, "number of heads"),
        (4601, "each apart"),
        (4710, "pooler"),
        ("many", "a number"),
        ((440, 640, 40), "a number"),
        (torch.zeros(2), "a number"),
    ],
    "6.2": [
        ((4, (3, 8, 5, 5)), "One more"),
        ((13, (3, 8, 5, 5)), "the embeddings and"),
        ((5, (3, 5, 16)), "token by token"),
        ((5, (3, 8, 5, 2)), "query or key"),
        ((5, (4, 3, 8, 5, 5)), "stacked"),
        ((5, (8, 5, 5)), "batch comes first"),
        ((5, (3, 5, 5)), "Each head"),
        ((5, (1, 2)), "(B, A, S, S)"),
        ((5, 5), "a tuple such as"),
        (5, "Give the number"),
        (("five", (3, 8, 5, 5)), "a number"),
    ],
    "6.3": [
        (lambda name: name, "unchanged"),
        (rename_but(**{"transformer.layer": "encoder.layer"}), "no such weight"),
        (rename_but(q_lin="key"), "another weight's place"),
        (
            rename_but(sa_layer_norm="feed_forward_norm", output_layer_norm="attention_norm"),
            "another weight's",
        ),
        (rename_but(LayerNorm="LayerNorm"), "unchanged"),
        (lambda name: rename(name).replace("layers.2", "layers.1"), "another weight's place"),
        (lambda name: rename(name) if "5" not in name else name, "unchanged"),
        (str.split, "a string"),
        (lambda name: None, "return"),
    ],
    "6.4": [
        (forward_parallel, "Every round got the embeddings"),
        (forward_pairs, "a pair"),
        (forward_own_layers, "the ordinary encoder"),
        (forward_last_layer, "last layer, used again"),
        (forward_words, "word vectors alone"),
        (forward_three, "with two there are three"),
        (forward_of_the_class, "calls the finished encoder"),
        (forward_of(type), "calls the finished encoder"),
        (forward_of(lambda encoder: TransformerEncoder), "calls the finished encoder"),
        (forward_in_evaluation, "to evaluation mode"),
        (forward_rewiring_the_encoder, "or its parts"),
        (forward_handing_on_pairs, "hand on the first of it"),
        (forward_cut_between_layers, "gradients do not get back"),
        (forward_without_gradient, "gradients do not get back"),
        (changed(to=lambda states: [state.detach() for state in states]), "gradients do not get back"),
        (lambda encoder, ids, mask, types: forward(encoder, ids, None, types), "not masked"),
        (lambda encoder, ids, mask, types: forward(encoder, ids, mask, None), "token types are missing"),
        (changed(to=lambda states: states[1:]), "The embeddings belong in front"),
        (changed(to=lambda states: states[:-1]), "last round's result is missing"),
        (changed(to=lambda states: states[-1]), "not the last one alone"),
        (changed(to=lambda states: states[::-1]), "The order is turned"),
        (changed(to=lambda states: [state + 1 for state in states]), "not the embeddings"),
        (changed(to=lambda states: states[:1] * 4), "after round 1"),
        (changed(to=lambda states: states[:1]), "3 layers give 4"),
        (changed(to=lambda states: dict(enumerate(states))), "list or tuple"),
        (lambda encoder, ids, mask, types: ["a", "b", "c", "d"], "torch tensor"),
        (lambda encoder, ids, mask, types: None, "return"),
    ],
    "6.5": [
        (thaw_slice, "layers[-0:]"),
        (thaw_first, "wrong layers"),
        (thaw_no_embeddings, "embeddings can still learn"),
        (thaw_tensors, "counts tensors"),
        (thaw_nothing, "Every layer is frozen"),
        (freeze_the_rest, "Every layer is frozen"),
        (thaw_all_layers, "Every layer can learn"),
        (count_all, "Count what can learn"),
        (thaw_and(lambda encoder, number: encoder.eval()), "eval() or train()"),
        (thaw_and(lambda encoder, number: encoder.train()), "eval() or train()"),
        (thaw_and(zero_the_last), "changes the encoder's parameters"),
        (lambda encoder, number: f"{thaw(encoder, number)} parameters", "a text"),
        (lambda encoder, number: (thaw(encoder, number), 172 * number)[1], "parameters can learn"),
        (lambda encoder, number: (thaw(encoder, number), None)[1], "return"),
    ],
}
