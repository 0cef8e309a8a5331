"""HiPPO-LegS (Gu et al. 2020), the start of S5's state matrix."""

from typing import Tuple

import torch
from torch import Tensor


def hippo_normal(N: int) -> Tuple[Tensor, Tensor]:
    """Eigenvalues [N // 2] and eigenvectors [N, N // 2] of HiPPO-N, the normal part of LegS, complex double.

    LegS: A_nk = -sqrt((2n+1)(2k+1)) below the diagonal, -(n+1) on it, 0 above; with P_n = sqrt(n + 1/2),
    A + P P^T = -1/2 + a skew matrix. Of each conjugate pair the eigenvalue with the negative imaginary part,
    ascending; eigenvectors have length 1 and a real first entry."""
    n = torch.arange(N, dtype=torch.float64)
    root = torch.sqrt(2 * n + 1)
    A = -torch.tril(root[:, None] * root[None, :], diagonal=-1) - torch.diag(n + 1)
    P = torch.sqrt(n + 0.5)
    normal = A + P[:, None] * P[None, :]
    skew = (normal - normal.T) / 2
    values, vectors = torch.linalg.eigh(torch.complex(torch.zeros_like(skew), -skew))
    values, vectors = values[:N // 2], vectors[:, :N // 2]  # ascending: the negative half comes first
    vectors = vectors * (vectors[0].abs() / vectors[0])
    return torch.complex(torch.full_like(values, -0.5), values), vectors
