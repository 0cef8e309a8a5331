// node onnx_stream.mjs stream|score FILE [--threads 1] [--batch 1] [--length 16000] [--chunk 256] [--repeats 3]
//
// Times an exported graph in ONNX Runtime on noise. stream: the chunk graph (or the step graph, with --chunk 0) over
// `length` steps, its states going from call to call. score: the sequence graph on `batch` sequences. The first pass
// is not counted; prints one line of JSON with the median of the seconds of the others. Runs in a folder that has
// onnxruntime-node.

import ort from 'onnxruntime-node';

const [what, file, ...rest] = process.argv.slice(2);
const options = {threads: 1, batch: 1, length: 16000, chunk: 256, repeats: 3};
for (let i = 0; i < rest.length; i += 2) {
  const key = rest[i].replace(/^--/, '');
  if (!(key in options)) throw new Error(`unknown option ${rest[i]}`);
  options[key] = Number(rest[i + 1]);
}
const {threads, batch, length, chunk, repeats} = options;
const session = await ort.InferenceSession.create(
    file, {intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all'});

// A stable noise between -0.2 and 0.2.
let seed = 1;
const noise = Float32Array.from({length: batch * length}, () => {
  seed = (seed * 48271) % 2147483647;
  return 0.4 * (seed / 2147483647 - 0.5);
});
const inputs = Object.fromEntries(session.inputMetadata.map(m => [m.name, m]));
const width = name => inputs[name].shape[1];

function score() {
  return session.run({
    x: new ort.Tensor('float32', noise, [batch, length, 1]),
    lengths: new ort.Tensor('int64', BigInt64Array.from({length: batch}, () => BigInt(length)), [batch]),
  });
}

async function stream() {
  let state = new ort.Tensor('float32', new Float32Array(width('state')), [1, width('state')]);
  let sum = new ort.Tensor('float64', new Float64Array(width('sum')), [1, width('sum')]);
  let count = new ort.Tensor('int64', new BigInt64Array(1), [1]);
  const steps = chunk || 1;
  for (let at = 0; at + steps <= length; at += steps) {
    const x = new ort.Tensor('float32', noise.subarray(at, at + steps), chunk ? [1, steps, 1] : [1, 1]);
    const out = await session.run({x, state, sum, count});
    [state, sum, count] = [out.state_next, out.sum_next, out.count_next];
  }
}

const times = [];
for (let i = 0; i <= repeats; ++i) {
  const begin = process.hrtime.bigint();
  await (what === 'score' ? score() : stream());
  if (i > 0) times.push(Number(process.hrtime.bigint() - begin) / 1e9);
}
times.sort((a, b) => a - b);
const seconds = times[times.length >> 1];
console.log(JSON.stringify({seconds, steps_per_second: batch * length / seconds, version: ort.env.versions.node}));
