"""The finished reference implementations that notebooks build; `support` holds what they rely on.

The docstring of each definition names the notebook and the section that build it. In the order of the notebooks:

    01  tokenization, exchanges    06  encoder, weights          11  masked_lm, pretraining
    02  embeddings                 07  heads                     12  decoder, generation
    03  attention                  08  classifier, training      13  packing
    04  attention                  09  search                    14  modernbert
    05  encoder_layer              10  heads                     15  token_labels, lora
"""
