// Synthesised words and WAV files of them.
import { writeFileSync } from "node:fs";

export const kRate = 8000;
export const kWords = ["low", "middle", "high"];
const kHertz = [260, 620, 1400];

// The same numbers for ever.
export function randomNumbers(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

// A tone with an overtone that swells and fades, of another height, length and loudness every time.
export function word(number, random) {
  const hertz = kHertz[number] * (0.92 + 0.16 * random()), length = Math.round(kRate * (0.2 + 0.15 * random()));
  const loud = 0.2 + 0.5 * random(), phase = 6.28 * random();
  return Array.from({ length }, (_, i) => {
    const t = (2 * Math.PI * hertz * i) / kRate + phase, swell = Math.sin((Math.PI * i) / length) ** 0.5;
    return loud * swell * (0.7 * Math.sin(t) + 0.2 * Math.sin(2 * t)) + 0.004 * (random() - 0.5);
  });
}

export function wavBytes(samples, rate = kRate) {
  const out = Buffer.alloc(44 + 2 * samples.length);
  out.write("RIFF", 0);
  out.writeUInt32LE(36 + 2 * samples.length, 4);
  out.write("WAVEfmt ", 8);
  out.writeUInt32LE(16, 16);
  out.writeUInt16LE(1, 20);
  out.writeUInt16LE(1, 22);
  out.writeUInt32LE(rate, 24);
  out.writeUInt32LE(2 * rate, 28);
  out.writeUInt16LE(2, 32);
  out.writeUInt16LE(16, 34);
  out.write("data", 36);
  out.writeUInt32LE(2 * samples.length, 40);
  samples.forEach((x, i) => out.writeInt16LE(Math.max(-32768, Math.min(32767, Math.round(32768 * x))), 44 + 2 * i));
  return out;
}

export function writeWav(file, samples, rate) {
  writeFileSync(file, wavBytes(samples, rate));
}
