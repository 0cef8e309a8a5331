"""A layer in a small classifier: which of two tones comes first in a noisy signal?

    PYTHONPATH=build/release/python python3 examples/python_layer.py
"""

import torch
from torch import nn

import rotrnn


class Classifier(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encoder = nn.Linear(1, width)
        self.layers = nn.Sequential(rotrnn.RotRNN(width, 32, 8, theta_max=1.5), nn.GELU(), nn.Linear(width, width),
                                    rotrnn.RotRNN(width, 32, 8, gamma_min=0.9), nn.GELU())
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.layers(self.encoder(x)).mean(dim=1))


def batch(count, time=128):
    """Two short tones, low and high, one in each half of the noise; the label is the one that comes first."""
    label = torch.randint(2, (count,))
    t = torch.arange(32)
    tones = torch.stack([torch.sin(0.3 * t), torch.sin(1.1 * t)])
    x = 0.5 * torch.randn(count, time)
    for half in range(2):
        begin = half * time // 2 + torch.randint(time // 2 - 32, (count,))
        x.scatter_add_(1, begin[:, None] + t, tones[(label + half) % 2])
    return x[:, :, None], label


def main():
    torch.manual_seed(0)
    model = Classifier()
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(151):
        x, label = batch(64)
        loss = nn.functional.cross_entropy(model(x), label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 50 == 0:
            print(f"step {step}  loss {loss.item():.3f}")
    with torch.no_grad():
        x, label = batch(1000)
        accuracy = (model(x).argmax(dim=1) == label).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    assert accuracy > 0.9, "it did not learn"


if __name__ == "__main__":
    main()
