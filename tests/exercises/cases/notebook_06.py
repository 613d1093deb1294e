"""Answers readers give to the exercises of notebook 06: right alternatives, and wrong ones with a word of the hint."""

import re

import numpy as np
import torch

from tests.exercises.parts import NAMES
from tests.exercises.parts import encoder as stack
from utils.encoder import TransformerEncoder


def rename(name, first=(), **changes):
    """Our name, by the replacements of `first`, then by the usual ones, of which some are changed."""
    if name.startswith("pooler") or name.endswith("_ids"):
        return None
    for theirs, ours in [*first, *((theirs, changes.get(ours, ours)) for theirs, ours in NAMES)]:
        name = name.replace(theirs, ours)
    return name


def rename_by_parts(name):
    match = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
    if not match:
        known = name.startswith("embeddings") and not name.endswith("_ids")
        return name.replace("LayerNorm", "layer_norm") if known else None
    layer, part, kind = match.groups()
    table = {theirs: ours for theirs, ours in NAMES if "self" not in theirs}
    return f"layers.{layer}.{table.get(part, part.replace('.self', ''))}.{kind}"


def rename_all(name):
    for theirs, ours in NAMES:
        name = name.replace(theirs, ours)
    return name


def rename_one_layer(name):
    found = rename_all(name)
    return found if name.startswith(("embeddings", "encoder.layer.0")) and not name.endswith("_ids") else None


def rename_and_forget_to_return(name):
    rename(name)


def stack_by_number(self, input_ids, attention_mask, token_type_ids):
    pairs = [(self.embeddings(input_ids, token_type_ids), None)]
    for number in range(len(self.layers)):
        pairs.append(self.layers[number](pairs[-1][0], attention_mask, output_attentions=True))
    return tuple(state for state, _ in pairs), tuple(weights for _, weights in pairs[1:])


def stack_with(states=None, weights=None, mask=True, types=True, ask=True):
    """A stack that does something else with the states or weights at its end, or leaves out what it is given."""

    def forward(self, input_ids, attention_mask, token_type_ids):
        found, attentions = [self.embeddings(input_ids, token_type_ids if types else None)], []
        for layer in self.layers:
            state, looked = layer(found[-1], attention_mask if mask else None, ask)
            found.append(state)
            attentions.append(looked)
        return (states or list)(found), (weights or list)(attentions)

    return forward


def stack_by_forward(self, input_ids, attention_mask, token_type_ids):
    states, attentions = [self.embeddings(input_ids, token_type_ids)], []
    for layer in self.layers:
        state, weights = layer.forward(states[-1], attention_mask, True)
        states.append(state)
        attentions.append(weights)
    return states, attentions


def stack_of(pick):
    """A stack that calls, in each round, the layer that `pick` gives for the layers and the round's number."""

    def forward(self, input_ids, attention_mask, token_type_ids):
        states, attentions = [self.embeddings(input_ids, token_type_ids)], []
        for number in range(len(self.layers)):
            state, weights = pick(self.layers, number)(states[-1], attention_mask, True)
            states.append(state)
            attentions.append(weights)
        return states, attentions

    return forward


def stack_side_by_side(self, input_ids, attention_mask, token_type_ids):
    start = self.embeddings(input_ids, token_type_ids)
    found = [layer(start, attention_mask, True) for layer in self.layers]
    return [start, *(state for state, _ in found)], [weights for _, weights in found]


def stack_of_three(self, input_ids, attention_mask, token_type_ids):
    states, attentions = stack(self, input_ids, attention_mask, token_type_ids)
    return [*states, *states][:4], [*attentions, *attentions][:3]


def stack_of_words(self, input_ids, attention_mask, token_type_ids):
    states, attentions = [self.embeddings.word_embeddings(input_ids)], []
    for layer in self.layers:
        state, weights = layer(states[-1], attention_mask, True)
        states.append(state)
        attentions.append(weights)
    return states, attentions


def stack_handing_on_pairs(self, input_ids, attention_mask, token_type_ids):
    state = self.embeddings(input_ids, token_type_ids)
    for layer in self.layers:
        state = layer(state, attention_mask, True)
    return state, []


def stack_of_the_class(self, *given):
    found = self.forward(*given, output_hidden_states=True, output_attentions=True)
    return found.hidden_states, found.attentions


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
    "6.1": [
        stack,
        stack_by_number,
        stack_with(states=tuple, weights=tuple),
        stack_with(states=torch.stack, weights=torch.stack),
    ],
    "6.2": [4600, 4600.0, np.int64(4600), torch.tensor(4600), "4,600", "4600 parameters"],
    "6.3": [rename, rename_by_parts],
    "6.4": [forward, forward_recursively, forward_tensor, forward_yielding],
    "6.5": [thaw, thaw_by_name],
}

WRONG = {
    "6.1": [
        (stack_with(states=lambda states: states[-1]), "Return two lists"),
        (forward, "Return two lists"),
        (lambda *given: stack(*given)[::-1], "The two are swapped: the hidden"),
        (stack_by_forward, "self.layers[0] is never called"),
        (stack_with(mask=False), "not masked"),
        (stack_with(types=False), "token types are missing"),
        (stack_with(ask=False), "weights are None"),
        (stack_with(states=lambda states: states[1:]), "The embeddings come first"),
        (stack_with(states=lambda states: states[:-1]), "last round's result is missing"),
        (stack_with(states=lambda states: states[::-1]), "The order is reversed: the embeddings"),
        (stack_with(states=lambda states: states[:1]), "3 layers give 4"),
        (stack_with(states=lambda states: [s.detach() for s in states]), "gradients do not flow back"),
        (stack_with(weights=lambda weights: weights[-1:]), "1 tensors of attention weights for 3 layers"),
        (stack_with(weights=lambda weights: weights[::-1]), "weights of layer 0 are wrong"),
        (stack_with(weights=lambda weights: [w.mean(1) for w in weights]), "should have the shape"),
        (stack_of(lambda layers, number: layers[0]), "This uses the first layer in"),
        (stack_of(lambda layers, number: layers[-1]), "This uses the last layer in"),
        (stack_of(lambda layers, number: layers[-1 - number]), "The layers are in the wrong"),
        (stack_side_by_side, "Every round got the embeddings"),
        (stack_of_three, "Right for three layers, but two"),
        (stack_of_words, "These are only word vectors. Call"),
        (stack_handing_on_pairs, "A layer returns a pair, hidden"),
        (stack_of_the_class, "calls the finished encoder"),
    ],
    "6.2": [
        (1120, "one layer"),
        (3360, "These are only the layers. Add"),
        (2360, "parameters of its own"),
        (4400, "positions"),
        (4580, "Twenty are missing"),
        (4480, "LayerNorms of the layers"),
        (4460, "a gain and a shift"),
        (4540, "two LayerNorms"),
        (4360, "biases are missing"),
        (4290, "biases are missing"),
        (4220, "These are only the matrices. Add"),
        (4270, "output layer"),
        (5920, "number of heads"),
        (7960, "number of heads"),
        (4601, "Count the embeddings (three tables and"),
        (4710, "pooler"),
        ("many", "a number"),
        ((440, 640, 40), "a number"),
        (torch.zeros(2), "a number"),
    ],
    "6.3": [
        (lambda name: name, "unchanged"),
        (str.split, "type list"),
        (rename_all, ", but our encoder has no"),
        (rename_one_layer, "your function returns None. Does it"),
        (rename_and_forget_to_return, "your function returns None. Does it"),
        (lambda name: rename(name, first=[("output.dense", "feed_forward.output")]), "longer ones first"),
        (lambda name: rename(name, first=[("output.LayerNorm", "feed_forward_norm")]), "longer ones first"),
        (lambda name: rename(name, first=[("LayerNorm", "layer_norm")]), "no such weight"),
        (lambda name: rename(name, first=[("encoder.layer", "layer")]), "no such weight"),
        (lambda name: rename(name, first=[("layer.11.", "layer.1.")]), "which is the name of another"),
        (lambda name: rename(name, attention_norm="feed_forward_norm"), "which is the name of another"),
        (lambda name: rename(name) if "intermediate" not in name else name, "unchanged"),
    ],
    "6.4": [
        (forward_parallel, "Every round got the embeddings"),
        (forward_pairs, "a pair"),
        (forward_own_layers, "the ordinary encoder"),
        (forward_last_layer, "This uses the last layer in"),
        (forward_words, "These are only word vectors. Call"),
        (forward_three, "Right for three layers, but two"),
        (forward_of_the_class, "calls the finished encoder"),
        (forward_of(type), "calls the finished encoder"),
        (forward_of(lambda encoder: TransformerEncoder), "calls the finished encoder"),
        (forward_in_evaluation, "to evaluation mode"),
        (forward_rewiring_the_encoder, "Your function changes the encoder's parameters"),
        (forward_handing_on_pairs, "A layer returns a pair, hidden"),
        (forward_cut_between_layers, "gradients do not flow back"),
        (forward_without_gradient, "gradients do not flow back"),
        (changed(to=lambda states: [state.detach() for state in states]), "gradients do not flow back"),
        (lambda encoder, ids, mask, types: forward(encoder, ids, None, types), "not masked"),
        (lambda encoder, ids, mask, types: forward(encoder, ids, mask, None), "token types are missing"),
        (changed(to=lambda states: states[1:]), "The embeddings come first"),
        (changed(to=lambda states: states[:-1]), "last round's result is missing"),
        (changed(to=lambda states: states[-1]), "Return all hidden states as a"),
        (changed(to=lambda states: states[::-1]), "The order is reversed: the embeddings"),
        (changed(to=lambda states: [state + 1 for state in states]), "not the embeddings"),
        (changed(to=lambda states: states[:1] * 4), "after round 1"),
        (changed(to=lambda states: states[:1]), "3 layers give 4"),
        (changed(to=lambda states: dict(enumerate(states))), "list or tuple"),
        (lambda encoder, ids, mask, types: ["a", "b", "c", "d"], "torch tensor"),
    ],
    "6.5": [
        (thaw_slice, "layers[-0:]"),
        (thaw_first, "wrong layers"),
        (thaw_no_embeddings, "embeddings can still learn"),
        (thaw_tensors, "counts tensors"),
        (thaw_nothing, "Every layer is frozen"),
        (freeze_the_rest, "Every layer is frozen"),
        (thaw_all_layers, "Every layer can learn"),
        (count_all, "Count only the parameters that can"),
        (thaw_and(lambda encoder, number: encoder.eval()), "eval() or train()"),
        (thaw_and(lambda encoder, number: encoder.train()), "eval() or train()"),
        (thaw_and(zero_the_last), "changes the encoder's parameters"),
        (lambda encoder, number: f"{thaw(encoder, number)} parameters", "Your function returns text. Return only"),
        (lambda encoder, number: (thaw(encoder, number), 172 * number)[1], "parameters can learn"),
        (lambda encoder, number: (thaw(encoder, number), None)[1], "Your function returns None"),
    ],
}
