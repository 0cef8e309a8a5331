// WAV files: 8, 16, 24, 32 bits or float, any number of channels, which are averaged; whatever
// length the header claims. As rotrnn reads them: int16 / 32768.

const kRead = {
  1: {
    8: (view, at) => (view.getUint8(at) - 128) / 128,
    16: (view, at) => view.getInt16(at, true) / 32768,
    24: (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 8388608,
    32: (view, at) => view.getInt32(at, true) / 2147483648,
  },
  3: {
    32: (view, at) => view.getFloat32(at, true),
    64: (view, at) => view.getFloat64(at, true),
  },
};

// { rate, samples: Float32Array } of an ArrayBuffer; an Error says what is wrong with it.
export function readWav(buffer) {
  const view = new DataView(buffer);
  const tag = (at) => (at + 4 <= buffer.byteLength
    ? String.fromCharCode(...new Uint8Array(buffer, at, 4)) : "");
  if (tag(0) !== "RIFF" || tag(8) !== "WAVE") {
    throw new Error("not a WAV file; convert it first, for example: ffmpeg -i FILE out.wav");
  }
  let format = null;
  for (let at = 12; at + 8 <= buffer.byteLength;) {
    const name = tag(at), size = Math.min(view.getUint32(at + 4, true), buffer.byteLength - at - 8);
    at += 8;
    if (name === "fmt " && size >= 16) {
      format = { code: view.getUint16(at, true), channels: view.getUint16(at + 2, true),
                 rate: view.getUint32(at + 4, true), bits: view.getUint16(at + 14, true) };
      if (format.code === 0xfffe && size >= 26) format.code = view.getUint16(at + 24, true);
    } else if (name === "data") {
      if (!format) throw new Error("the WAV file has no format before its samples");
      return { rate: format.rate, samples: decode(view, at, size, format) };
    }
    at += size + (size & 1);
  }
  throw new Error("the WAV file ends before its samples");
}

function decode(view, at, size, { code, channels, rate, bits }) {
  const read = kRead[code] && kRead[code][bits];
  if (!read) throw new Error(`samples of kind ${code} with ${bits} bits are not read; save the WAV as 16-bit PCM`);
  if (channels < 1 || rate < 1) throw new Error("the WAV file claims to have no channels or no sample rate");
  const bytes = bits / 8, samples = new Float32Array(Math.floor(size / (bytes * channels)));
  if (samples.length === 0) throw new Error("the WAV file holds no sound");
  for (let i = 0; i < samples.length; ++i) {
    let sum = 0;
    for (let c = 0; c < channels; ++c, at += bytes) sum += read(view, at);
    samples[i] = sum / channels;
    if (!Number.isFinite(samples[i])) throw new Error(`sample ${i} of the WAV file is not a number`);
  }
  return samples;
}
