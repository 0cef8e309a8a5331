"""Wrong use says what was seen and what to do."""

import pytest
import torch

import rotrnn


def layer(**options):
    return rotrnn.RotRNN(6, 8, 2, **options)


U = torch.zeros(2, 5, 6)

CALLS = {
    "width": (lambda: layer()(torch.zeros(2, 5, 7)), r"shape \(2, 5, 7\); expected \[batch, time, width\] with width = 6"),
    "dims": (lambda: layer()(torch.zeros(5, 6)), r"one sequence is u\[None\].*forward_packed"),
    "packed dims": (lambda: layer().forward_packed(U, [0, 5]), r"expected \[n, width\]"),
    "step dims": (lambda: layer().step(U), r"expected \[batch, width\]"),
    "double input": (lambda: layer()(U.double()), r"float64, the parameters of torch.float32; .*u.float\(\)"),
    "float input": (lambda: layer().double()(U), r"u.double\(\)"),
    "integers": (lambda: layer()(U.long()), r"int64"),
    "half": (lambda: layer().half()(U.half()), r"layer.float\(\)"),
    "device": (lambda: layer()(U.to("meta")), r"on meta, the parameters on cpu"),
    "lengths count": (lambda: layer()(U, lengths=[5]), r"lengths has 1 numbers for a batch of 2"),
    "lengths long": (lambda: layer()(U, lengths=[5, 6]), r"from 5 to 6; with 5 time steps"),
    "lengths negative": (lambda: layer()(U, lengths=[-1, 5]), r"from -1 to 5"),
    "lengths float": (lambda: layer()(U, lengths=torch.tensor([5.0, 5.0])), r"float32; give whole numbers"),
    "lengths dims": (lambda: layer()(U, lengths=[[5], [5]]), r"one dimension"),
    "offsets begin": (lambda: layer().forward_packed(U[0], [1, 5]), r"begins with 0"),
    "offsets empty": (lambda: layer().forward_packed(U[0], []), r"begins with 0"),
    "offsets fall": (lambda: layer().forward_packed(U[0], [0, 4, 3, 5]), r"never fall"),
    "offsets end": (lambda: layer().forward_packed(U[0], [0, 4]), r"ends with 4, but there are 5 rows"),
    "state shape": (lambda: layer()(U, state=torch.zeros(2, 7)), r"shape \(2, 7\); expected \[batch, 2S\] = \(2, 8\)"),
    "state dtype": (lambda: layer()(U, state=torch.zeros(2, 8).double()), r"must agree"),
    "state pair": (lambda: layer(bidirectional=True)(U, state=torch.zeros(2, 8)), r"pair \(forward, reverse\)"),
    "step both ways": (lambda: layer(bidirectional=True).step(U[:, 0]), r"whole sequence"),
    "heads": (lambda: rotrnn.RotRNN(6, 8, 3), r"heads = 3 does not divide state = 8"),
    "head size": (lambda: rotrnn.RotRNN(6, 8, 8), r"at most 4 heads"),
    "sizes": (lambda: rotrnn.RotRNN(0, 8, 2), r"at least 1"),
    "c": (lambda: layer(c=0), r"c is 0"),
    "normalisation": (lambda: layer(normalisation="x"), r"'x'; choose one of 'xi', 'alpha', 'none'"),
    "stationary": (lambda: layer(stationary_start=True, normalisation="none"), r"needs normalisation"),
    "gamma": (lambda: layer(gamma_min=0.9, gamma_max=0.5), r"gamma_min = 0.9 and gamma_max = 0.5"),
    "gamma zero": (lambda: layer(gamma_min=0, gamma_init="log_uniform"), r"cannot reach"),
    "theta": (lambda: layer(theta_max=0), r"above 0"),
    "kernels": (lambda: layer(kernels="fast"), r"'fast'; choose \"fused\" or \"reference\""),
    "lru state": (lambda: rotrnn.LRU(4, 5), r"must be even"),
    "lru radius": (lambda: rotrnn.LRU(4, 6, r_max=1.5), r"r_max = 1.5"),
    "lru gamma": (lambda: rotrnn.LRU(4, 6, gamma="no"), r"choose one of 'learned', 'fixed'"),
    "s5 blocks": (lambda: rotrnn.S5(4, 12, blocks=4), r"multiple of 2 \* blocks"),
    "s5 dt": (lambda: rotrnn.S5(4, 16, dt_min=1, dt_max=0.1), r"dt_min = 1"),
    "s5 c_init": (lambda: rotrnn.S5(4, 16, c_init="x"), r"c_init is 'x'"),
    "threads": (lambda: rotrnn.set_num_threads(0), r"at least 1"),
}


@pytest.mark.parametrize("name", CALLS)
def test_value_errors(name):
    call, message = CALLS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_types():
    with pytest.raises(TypeError, match="give a torch.Tensor"):
        layer()([[[0.0] * 6]])
    with pytest.raises(TypeError, match="give a torch.Tensor"):
        layer()(U, state=[0.0])
