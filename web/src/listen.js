// Finds words in sound that does not end: where the level rises above that of the room a word
// begins, where it has been low for a while it is over. Sound is looked at in frames of 10 ms.

const kPerSecond = 100;
const kBefore = 8;        // frames before the level rose that belong to the word: soft beginnings
const kAfter = 4;         // frames behind the last loud one that do
const kPause = 30;        // frames of low level that end a word: longer than the t in "eight" waits
const kShortest = 6;      // loud frames of a word; less is a click
const kLongest = 400;     // frames of a word
const kMemory = 300;      // frames that the level of the room is looked for in
const kQuietest = 0.006;  // a level that is no word in any room: -44 dB
const kAboveRoom = 3.5;   // 11 dB

// The standard deviation of samples about their mean: a microphone may have an offset.
export function level(samples) {
  let sum = 0, square = 0;
  for (const x of samples) {
    sum += x;
    square += x * x;
  }
  const mean = sum / samples.length;
  return Math.sqrt(Math.max(square / samples.length - mean * mean, 0));
}

export class Listener {
  constructor(rate) {
    this.frame = Math.max(1, Math.round(rate / kPerSecond));
    this.reset();
  }

  reset() {
    this.rest = new Float32Array(0);
    this.levels = [];    // of the last frames outside words
    this.before = [];    // the last frames, should a word begin
    this.speaking = false;
    this.rising = 0;
  }

  // Calls `on` for every whole frame:
  //   idle(frame)                     no word
  //   begin(frames)                   a word began, with these frames, the last of them new
  //   go(frame, inside)               it goes on; inside: this frame may be its last
  //   end(frame, valid)               it is over; valid: it was long enough to be one
  push(samples, on) {
    const all = new Float32Array(this.rest.length + samples.length);
    all.set(this.rest);
    all.set(samples, this.rest.length);
    let at = 0;
    for (; at + this.frame <= all.length; at += this.frame) {
      this.look(all.subarray(at, at + this.frame), on);
    }
    this.rest = all.slice(at);
  }

  // No more sound: ends a word that is under way.
  finish(on) {
    if (this.speaking) this.stop(new Float32Array(0), on);
    this.rest = new Float32Array(0);
  }

  threshold() {
    return Math.max(kQuietest, kAboveRoom * Math.min(...this.levels));
  }

  look(frame, on) {
    const loud = level(frame);
    if (this.speaking) {
      ++this.length;
      this.silent = loud > 0.6 * this.limit ? 0 : this.silent + 1;
      if (this.silent === 0) ++this.voiced;
      if (this.silent >= kPause || this.length >= kLongest) return this.stop(frame, on);
      return on.go(frame, this.silent <= kAfter);
    }
    this.levels.push(loud);
    if (this.levels.length > kMemory) this.levels.shift();
    this.before.push(frame.slice());
    if (this.before.length > kBefore) this.before.shift();
    this.limit = this.threshold();
    this.rising = loud > this.limit ? this.rising + 1 : 0;
    if (this.rising < 2) return on.idle(frame);
    this.speaking = true;
    this.length = this.voiced = 2;
    this.silent = this.rising = 0;
    return on.begin(this.before.splice(0));
  }

  stop(frame, on) {
    this.speaking = false;
    on.end(frame, this.voiced >= kShortest);
  }
}
