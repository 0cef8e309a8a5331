// node session.mjs: runs ONNX graphs. Standard input is {"jobs": [{"file", "calls": [{name: {type, shape, data}}]}]};
// an input that a call does not name is the output NAME_next of the call before it, also of another file where
// "go_on" of the job is true. Standard output is [[{name: {type, shape, data}} of every call] of every job].

import fs from 'node:fs';
import ort from 'onnxruntime-node';

const ARRAYS = {float32: Float32Array, float64: Float64Array, int64: BigInt64Array};

function tensor({type, shape, data}) {
  const numbers = type === 'int64' ? data.map(BigInt) : data;
  return new ort.Tensor(type, ARRAYS[type].from(numbers), shape);
}

function plain(t) {
  return {type: t.type, shape: t.dims, data: Array.from(t.data, Number)};
}

const {jobs} = JSON.parse(fs.readFileSync(0, 'utf8'));
const results = [];
let last = {};
for (const {file, calls, go_on} of jobs) {
  const session = await ort.InferenceSession.create(file, {intraOpNumThreads: 1, interOpNumThreads: 1});
  const outputs = [];
  if (!go_on) last = {};
  for (const call of calls) {
    const feeds = {};
    for (const name of session.inputNames) {
      feeds[name] = call[name] ? tensor(call[name]) : last[name + '_next'];
      if (!feeds[name]) throw new Error(`${file}: nothing for the input ${name}`);
    }
    for (const name of Object.keys(call)) {
      if (!(name in feeds)) throw new Error(`${file}: has no input ${name}`);
    }
    last = await session.run(feeds);
    outputs.push(Object.fromEntries(Object.entries(last).map(([name, t]) => [name, plain(t)])));
  }
  results.push(outputs);
  await session.release();
}
process.stdout.write(JSON.stringify(results, (_, x) => Number.isNaN(x) ? 'nan' : x));
