// The three charts, on one axis of time.

const kPalette = {
  light: ["#1f6fc4", "#d55e00", "#0b8f68", "#b0468f", "#8a6d00", "#5b4bc4", "#00808f", "#a33b3b", "#4f6b2a", "#5d6673"],
  dark: ["#5aa9f5", "#ff9650", "#45cfa0", "#e88bcb", "#e3c34d", "#a99bff", "#4fd3e3", "#f08787", "#a9cf6d", "#b3bdca"],
};

const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

export function colour(number) {
  const colours = kPalette[theme()];
  if (number < colours.length) return colours[number];
  const hue = Math.round((number * 137.508) % 360);
  return theme() === "dark" ? `hsl(${hue} 70% 68%)` : `hsl(${hue} 62% 38%)`;
}

// From cold to warm with the depth of a block.
export function blockColour(number, count) {
  const hue = 215 - (190 * number) / Math.max(count - 1, 1);
  return theme() === "dark" ? `hsl(${hue} 75% 66%)` : `hsl(${hue} 72% 40%)`;
}

const kLeft = 44, kRight = 8, kTop = 8, kBottom = 18;

// A canvas as sharp as the screen, with a plot area in it: x by sample, y from 0 to 1 upwards.
class Plot {
  constructor(canvas, trace) {
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const width = Math.max(1, Math.round(box.width * ratio)), height = Math.max(1, Math.round(box.height * ratio));
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    this.c = canvas.getContext("2d");
    this.c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.c.clearRect(0, 0, box.width, box.height);
    this.left = kLeft;
    this.right = Math.max(box.width - kRight, kLeft + 1);
    this.top = kTop;
    this.bottom = box.height - kBottom;
    const style = getComputedStyle(document.documentElement);
    this.theme = (name) => style.getPropertyValue("--" + name).trim();
    this.trace = trace;
    [this.begin, this.end] = trace ? trace.range() : [0, 1];
    this.c.font = "11.5px system-ui, sans-serif";
    this.c.lineJoin = "round";
  }

  x(sample) { return this.left + ((sample - this.begin) / (this.end - this.begin)) * (this.right - this.left); }
  y(part) { return this.bottom - part * (this.bottom - this.top); }

  text(text, x, y, align = "left", ink = this.theme("soft")) {
    this.c.fillStyle = ink;
    this.c.textAlign = align;
    this.c.textBaseline = "middle";
    this.c.fillText(text, x, y);
  }

  line(points, stroke, width = 1) {
    this.c.beginPath();
    points.forEach(([x, y], i) => (i === 0 ? this.c.moveTo(x, y) : this.c.lineTo(x, y)));
    this.c.strokeStyle = stroke;
    this.c.lineWidth = width;
    this.c.stroke();
  }

  // marks: { place: 0 to 1, text }.
  rows(marks) {
    for (const { place, text } of marks) {
      this.line([[this.left, this.y(place)], [this.right, this.y(place)]], this.theme("grid"));
      this.text(text, this.left - 6, this.y(place), "right");
    }
  }

  seconds() {
    if (!this.trace) return;
    const { rate, live } = this.trace, length = (this.end - this.begin) / rate;
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 300].find((s) => length / s <= 8) || 600;
    const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0, zero = live ? this.end : 0;
    for (let i = Math.ceil((this.begin - zero) / rate / step - 1e-9); i * step * rate + zero <= this.end + 1e-6; ++i) {
      const x = this.x(zero + i * step * rate), align = x > this.right - 18 ? "right" : x < this.left + 12 ? "left" : "center";
      this.text(live && i === 0 ? "now" : `${(i * step).toFixed(digits)} s`, x, this.bottom + 10, align);
    }
  }

  cursor(at) {
    if (at === null) return;
    this.line([[this.x(at), this.top], [this.x(at), this.bottom]], this.theme("ink"), 1.5);
  }
}

export function drawWave(canvas, trace, classes, cursor) {
  const plot = new Plot(canvas, trace);
  plot.line([[plot.left, plot.y(0.5)], [plot.right, plot.y(0.5)]], plot.theme("grid"));
  plot.seconds();
  if (!trace) return;
  let top = 0.02;
  const from = Math.max(trace.first, Math.floor(plot.begin));
  for (let i = from; i < trace.end; ++i) top = Math.max(top, Math.abs(trace.sample(i)));
  plot.text(top.toFixed(2), plot.left - 6, plot.y(1), "right");
  plot.text((-top).toFixed(2), plot.left - 6, plot.y(0), "right");
  const y = (value) => plot.y(0.5 + (0.5 * value) / top);
  const columns = Math.max(1, Math.round(plot.right - plot.left)), per = (plot.end - plot.begin) / columns;
  let f = 0;
  const speaking = (at) => {
    while (f + 1 < trace.frames.length && trace.frames[f].at < at) ++f;
    return trace.frames.length > 0 && trace.frames[f].speaking;
  };
  const lines = { true: [], false: [] };
  for (let i = 0; i < columns; ++i) {
    // One sample beyond, so that columns meet.
    const a = Math.floor(plot.begin + i * per), b = Math.max(a + 1, Math.floor(plot.begin + (i + 1) * per));
    if (b <= trace.first || a >= trace.end) continue;
    let low = Infinity, high = -Infinity;
    for (let n = a; n <= Math.min(b, trace.end - 1); ++n) {
      low = Math.min(low, trace.sample(n));
      high = Math.max(high, trace.sample(n));
    }
    lines[speaking(b)].push([plot.left + i + 0.5, y(high) - 0.6, y(low) + 0.6]);
  }
  for (const [key, ink] of [["false", plot.theme("idle")], ["true", plot.theme("accent")]]) {
    plot.c.beginPath();
    for (const [x, high, low] of lines[key]) {
      plot.c.moveTo(x, high);
      plot.c.lineTo(x, low);
    }
    plot.c.strokeStyle = ink;
    plot.c.lineWidth = 1;
    plot.c.stroke();
  }
  plot.c.font = "600 14px system-ui, sans-serif";
  for (const { at, best } of trace.live || trace.words.length > 1 ? trace.words : []) {
    if (at > plot.begin) plot.text(classes[best], plot.x(at), plot.top + 8, "right", colour(best));
  }
  plot.cursor(cursor);
}

// Lines over the frames that have `key`, broken where there is none.
function drawLines(plot, key, number, value, ink, width) {
  let points = [];
  const flush = () => {
    if (points.length > 0) plot.line(points, ink, width);
    points = [];
  };
  for (const frame of plot.trace.frames) {
    if (frame.at < plot.begin) continue;
    if (frame[key]) points.push([plot.x(frame.at), plot.y(value(frame[key][number]))]);
    else flush();
  }
  flush();
}

export function drawClasses(canvas, trace, classes, cursor) {
  const plot = new Plot(canvas, trace);
  plot.rows([0, 0.5, 1].map((place) => ({ place, text: `${100 * place} %` })));
  plot.seconds();
  if (!trace) return;
  // Classes that nobody would take for the answer are drawn thin, below the others.
  const most = classes.map((_, k) => trace.frames.reduce(
    (top, frame) => (frame.answer && frame.at >= plot.begin ? Math.max(top, frame.answer[k]) : top), 0));
  const order = classes.map((_, k) => k).sort((a, b) => most[a] - most[b]);
  for (const k of order) drawLines(plot, "answer", k, (p) => p, colour(k), most[k] > 0.3 ? 2.2 : 0.8);
  plot.c.font = "600 13px system-ui, sans-serif";
  for (const k of trace.live ? [] : order.filter((k) => most[k] > 0.3)) {
    const peak = trace.frames.find((frame) => frame.answer && frame.answer[k] === most[k]);
    const x = Math.min(Math.max(plot.x(peak.at), plot.left + 12), plot.right - 16);
    plot.text(classes[k], x, plot.y(most[k]) + 12, "center", colour(k));
  }
  plot.cursor(cursor);
}

export function drawNorms(canvas, trace, depth, cursor) {
  const plot = new Plot(canvas, trace);
  let top = 0;
  for (const frame of trace ? trace.frames : []) {
    if (frame.norms && frame.at >= plot.begin) top = Math.max(top, ...frame.norms);
  }
  const step = top > 0 ? [1, 2, 5].map((s) => s * 10 ** Math.floor(Math.log10(top / 2)))
    .find((s) => top / s <= 4) || top / 3 : 1;
  const high = top > 0 ? 1.05 * top : 1;
  const marks = [];
  for (let i = 0; i * step <= high; ++i) {
    marks.push({ place: (i * step) / high, text: String(Number((i * step).toPrecision(3))) });
  }
  plot.rows(top > 0 ? marks : marks.slice(0, 1));
  plot.seconds();
  if (!trace) return;
  for (let b = 0; b < depth; ++b) drawLines(plot, "norms", b, (z) => z / high, blockColour(b, depth), 1.8);
  plot.cursor(cursor);
}
