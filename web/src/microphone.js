// The microphone: asks for it, and sends its sound through the audio thread to a port.
import captureSource from "capture-source";

const kReasons = {
  NotAllowedError: "The microphone was not allowed. Allow it for this page in the browser (beside the address), then start again; a dropped WAV file needs no permission.",
  SecurityError: "The browser does not give this page a microphone; a dropped WAV file needs none.",
  NotFoundError: "There is no microphone. Connect one and start again, or drop a WAV file.",
  NotReadableError: "The microphone does not answer; another program may be using it.",
};

export class Microphone {
  // Gives { rate, port }; an Error that a person can use when there is no sound to be had.
  async start(onLost) {
    if (!navigator.mediaDevices?.getUserMedia || !window.AudioWorkletNode) {
      throw new Error("Browsers give a microphone to https pages, localhost and files only: serve this page that way, or drop a WAV file.");
    }
    try {
      // As it is: what is meant for calls changes the sound that the model was trained on.
      this.media = await navigator.mediaDevices.getUserMedia({ audio: {
        channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
      this.context = new AudioContext();
      // Not a blob, as the worker is: pages from a disk may not load those into the audio thread.
      await this.context.audioWorklet.addModule("data:text/javascript," + encodeURIComponent(captureSource));
      const channel = new MessageChannel();
      const capture = new AudioWorkletNode(this.context, "capture", { numberOfOutputs: 0 });
      capture.port.postMessage({ port: channel.port1 }, [channel.port1]);
      this.context.createMediaStreamSource(this.media).connect(capture);
      await this.context.resume();
      this.media.getAudioTracks()[0].addEventListener("ended", onLost);
      return { rate: this.context.sampleRate, port: channel.port2 };
    } catch (error) {
      await this.stop();
      throw new Error(kReasons[error.name] || `There is no sound from the microphone: ${error.message}`);
    }
  }

  async stop() {
    for (const track of this.media?.getTracks() || []) track.stop();
    await this.context?.close();
    this.media = this.context = null;
  }
}
