"""All layers, the network, its losses and its optimiser in plain PyTorch: slow, and written from the papers.

Nothing here knows of the engine: it needs PyTorch alone (1.13 or newer), any device and precision, and gradients
are autograd's. The engine is tested against it in float64, and it serves the Python layers where the fused kernels
do not. Parameters are dicts of tensors by the names of the engine, settings are dicts by the keys of [model] in a
config, and batches are packed: values [n, ..] with the tokens of all sequences one after the other, and offsets
[sequences + 1] (int64).

    layers.run      one layer: y and states              network.run    encoder to head
    losses.loss     what training minimises             adamw.step     one step of the optimiser
"""
