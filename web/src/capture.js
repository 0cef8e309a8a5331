// In the audio thread: hands sound on, some blocks of 128 samples at a time, channels averaged.
registerProcessor("capture", class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.filled = 0;
    this.block = new Float32Array(512);
    this.port.onmessage = ({ data }) => { this.to = data.port; };
  }

  process([channels]) {
    if (!this.to || channels.length === 0) return true;
    for (let i = 0; i < channels[0].length; ++i) {
      let sum = 0;
      for (const channel of channels) sum += channel[i];
      this.block[this.filled++] = sum / channels.length;
      if (this.filled < this.block.length) continue;
      this.to.postMessage(this.block.slice());
      this.filled = 0;
    }
    return true;
  }
});
