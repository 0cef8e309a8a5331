// One sample rate to another, as the sound arrives: a windowed sinc that passes what both rates can
// hold. A stream cut anywhere gives the same samples.

const kZeros = 24;    // zero crossings of the sinc on either side
const kPhases = 256;  // places of its table between two of them, joined by straight lines
const kPass = 0.94;   // of the lower of the two half rates

const kTable = (() => {
  const table = new Float64Array(kZeros * kPhases + 2);
  for (let i = 0; i < table.length; ++i) {
    const x = i / kPhases, t = x / kZeros;
    // Kaiser's window, beta 8: 80 dB.
    const window = t < 1 ? bessel(8 * Math.sqrt(1 - t * t)) / bessel(8) : 0;
    table[i] = window * (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
  }
  return table;
})();

function bessel(x) {
  let sum = 1, term = 1;
  for (let k = 1; term > 1e-12 * sum; ++k) sum += term *= (x / (2 * k)) ** 2;
  return sum;
}

export class Resampler {
  constructor(from, to) {
    this.from = from;
    this.to = to;
    this.scale = kPass * Math.min(1, to / from);  // crossings per input sample
    this.reach = Math.ceil(kZeros / this.scale);
    this.reset();
  }

  reset() {
    this.kept = new Float32Array(this.reach);  // silence before the beginning
    this.first = -this.reach;                  // the number of the first sample kept
    this.made = 0;
  }

  // What is known now of the output; `end` says that nothing but silence follows.
  push(samples, end = false) {
    if (this.from === this.to) return samples;
    const arrived = this.first + this.kept.length + samples.length;
    const tail = end ? this.reach + 1 : 0;
    const input = new Float32Array(this.kept.length + samples.length + tail);
    input.set(this.kept);
    input.set(samples, this.kept.length);
    const place = (n) => (n * this.from) / this.to;
    // The last output that needs nothing that is still to come, or that is within the sound.
    const known = end ? arrived : arrived - this.reach - 1;
    const out = [];
    for (; place(this.made) < known; ++this.made) out.push(this.at(input, place(this.made)));
    const keep = Math.max(Math.floor(place(this.made)) - this.reach - this.first, 0);
    this.kept = input.slice(Math.min(keep, input.length - tail), input.length - tail);
    this.first = arrived - this.kept.length;
    return Float32Array.from(out);
  }

  at(input, place) {
    const begin = Math.ceil(place) - this.reach;
    let sum = 0;
    for (let n = begin; n < begin + 2 * this.reach; ++n) {
      const x = Math.abs(n - place) * this.scale * kPhases, i = Math.floor(x);
      if (i >= kTable.length - 1) continue;
      sum += input[n - this.first] * (kTable[i] + (x - i) * (kTable[i + 1] - kTable[i]));
    }
    return sum * this.scale;
  }
}
