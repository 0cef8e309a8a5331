// What there is to draw: sound, and what the model made of it, of a whole clip or of the last
// seconds of live sound.

const kWindow = 5;  // seconds of live sound

export class Trace {
  constructor(source, rate) {
    this.live = source === "microphone";
    this.rate = rate;
    this.samples = new Float32Array(rate);
    this.first = 0;    // the number of the first sample kept
    this.end = 0;      // behind the last
    this.frames = [];  // { at, speaking, answer?, norms? }
    this.words = [];   // { at, best }
  }

  add(samples, frames) {
    this.forget();
    const used = this.end - this.first;
    if (used + samples.length > this.samples.length) {
      const larger = new Float32Array(2 * (used + samples.length));
      larger.set(this.samples.subarray(0, used));
      this.samples = larger;
    }
    this.samples.set(samples, used);
    this.end += samples.length;
    for (const frame of frames) this.frames.push(frame);
  }

  // Drops what has long left the window, now and then.
  forget() {
    const begin = this.end - kWindow * this.rate;
    if (!this.live || begin - this.first < kWindow * this.rate) return;
    this.samples.copyWithin(0, begin - this.first, this.end - this.first);
    this.first = begin;
    this.frames = this.frames.filter((frame) => frame.at >= begin);
    this.words = this.words.filter((word) => word.at >= begin);
  }

  // The samples that are shown, from and to.
  range() {
    return this.live ? [this.end - kWindow * this.rate, this.end] : [0, Math.max(this.end, 1)];
  }

  sample(number) {
    return number >= this.first && number < this.end ? this.samples[number - this.first] : 0;
  }

  // The last frame that ends at this sample or before it.
  frameAt(number) {
    let found = null;
    for (const frame of this.frames) {
      if (frame.at > number) break;
      found = frame;
    }
    return found;
  }
}
