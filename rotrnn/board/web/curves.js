// Curves over training: which charts there are, how lines become rows of dygraphs, smoothing,
// mean and standard deviation over seeds, and a zoom that all charts share.
"use strict";

const rotrnn = {};

rotrnn.make = function (tag, options, children) {
  const { text, on, data, ...attributes } = options || {};
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  if (text !== undefined) element.textContent = text;
  for (const [name, handler] of Object.entries(on || {})) element.addEventListener(name, handler);
  for (const [name, value] of Object.entries(data || {})) element.dataset[name] = value;
  for (const child of children || []) if (child) element.append(child);
  return element;
};

// Distinct in hue and lightness, also for most who see few colours.
rotrnn.palette = {
  light: ["#1f6fc4", "#d55e00", "#0b8f68", "#b0468f", "#8a6d00", "#5b4bc4", "#00808f", "#a33b3b", "#4f6b2a", "#5d6673"],
  dark: ["#5aa9f5", "#ff9650", "#45cfa0", "#e88bcb", "#e3c34d", "#a99bff", "#4fd3e3", "#f08787", "#a9cf6d", "#b3bdca"],
};

rotrnn.theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

rotrnn.colour = function (number) {
  const colours = rotrnn.palette[rotrnn.theme()];
  if (number < colours.length) return colours[number];
  const hue = Math.round((number * 137.508) % 360);
  return rotrnn.theme() === "dark" ? `hsl(${hue} 70% 68%)` : `hsl(${hue} 62% 38%)`;
};

// A number in a readable form.
rotrnn.number = function (value) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(4)));
};
rotrnn.percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(2) + " %");
rotrnn.short = function (value) {
  const size = Math.abs(value);
  if (size >= 1e6) return Number((value / 1e6).toPrecision(4)) + "M";
  if (size >= 1e4) return Number((value / 1e3).toPrecision(4)) + "k";
  if (size !== 0 && size < 1e-3) return value.toExponential(1).replace(".0e", "e");
  return String(Number(value.toPrecision(5)));
};

rotrnn.charts = [
  { key: "loss", title: "Loss", smooth: true, lines: [["train.loss", "train"], ["validation.loss", "validation"]] },
  { key: "accuracy", title: "Accuracy", percent: true, lines: [["validation.accuracy", "validation"], ["test.accuracy", "test"]] },
  { key: "error", title: "Mean absolute error", lines: [["validation.mae", "validation"], ["test.mae", "test"]] },
  { key: "rates", title: "Learning rates", lines: [["train.global_lr", "global"], ["train.recurrent_lr", "recurrent"]] },
  { key: "gradient", title: "Gradient norm", smooth: true, lines: [["train.gradient_norm", ""]] },
  { key: "norms", title: "Norm of the hidden state, by block", layers: "norms.whole." },
  { key: "norms_head", title: "Norm of the hidden state per head, by block", layers: "norms.head." },
  { key: "speed", title: "Tokens per second", zero: true, smooth: true, lines: [["train.tokens_per_second", ""]] },
  { key: "memory", title: "Memory, MB", zero: true, lines: [["train.memory_mb", ""]] },
];

// An exponential mean over `width` steps that forgets by distance, so that it looks the same
// however densely points lie; without the bias of a start at zero.
rotrnn.smooth = function (x, y, width) {
  if (!(width > 0)) return y;
  const out = new Array(y.length);
  let sum = 0, weight = 0;
  for (let i = 0; i < y.length; ++i) {
    const keep = i ? Math.exp(-(x[i] - x[i - 1]) / width) : 0;
    sum = sum * keep + y[i];
    weight = weight * keep + 1;
    out[i] = sum / weight;
  }
  return out;
};

// The value of a curve at a step, on the straight line between its points; null outside.
rotrnn.at = function (x, y, step) {
  if (!x.length || step < x[0] || step > x[x.length - 1]) return null;
  let low = 0, high = x.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < step) low = middle + 1; else high = middle;
  }
  if (x[low] === step) return y[low];
  return y[low - 1] + ((y[low] - y[low - 1]) * (step - x[low - 1])) / (x[low] - x[low - 1]);
};

// Mean and standard deviation (n - 1) of curves at all of their steps, of those that reach there.
rotrnn.spread = function (curves, most) {
  let steps = [...new Set(curves.flatMap((curve) => curve.x))].sort((a, b) => a - b);
  if (steps.length > most) {
    steps = Array.from({ length: most }, (_, i) => steps[Math.round((i * (steps.length - 1)) / (most - 1))]);
  }
  const out = { x: [], y: [], deviation: [] };
  for (const step of steps) {
    const values = curves.map((curve) => rotrnn.at(curve.x, curve.y, step)).filter((v) => v !== null);
    if (!values.length) continue;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const square = values.reduce((a, b) => a + (b - mean) * (b - mean), 0);
    out.x.push(step);
    out.y.push(mean);
    out.deviation.push(values.length > 1 ? Math.sqrt(square / (values.length - 1)) : 0);
  }
  return out;
};

// All lines of a chart: { name, colour, dash, faint, x, y, deviation }.
rotrnn.linesOf = function (chart, entries, options) {
  const lines = [];
  const longest = Math.max(1, ...entries.flatMap((entry) => entry.runs.map((run) => run.step || 0)));
  const width = chart.smooth ? options.smoothing * options.smoothing * 0.2 * longest : 0;
  const curve = (data) => {
    const dense = data.mean_x || data.x;
    return width > 0
      ? { x: dense, y: rotrnn.smooth(dense, data.mean_y || data.y, width), raw: data }
      : { x: data.x, y: data.y };
  };
  for (const entry of entries) {
    const names = chart.lines
      ? chart.lines
      : [...new Set(entry.runs.flatMap((run) => Object.keys(run.shown())))]
          .filter((name) => name.startsWith(chart.layers))
          .map((name) => [name, "block " + (Number(name.slice(chart.layers.length)) + 1)])
          .sort((a, b) => Number(a[0].slice(chart.layers.length)) - Number(b[0].slice(chart.layers.length)));
    names.forEach(([name, part], number) => {
      const found = entry.runs.map((run) => run.shown()[name]).filter((data) => data && data.x.length);
      if (!found.length) return;
      const alone = !chart.lines && entries.length === 1;
      const line = {
        name: part && (alone ? part : entry.name + ", " + part) || entry.name,
        colour: alone ? rotrnn.colour(number) : entry.colour,
        dash: chart.lines ? number > 0 : false,
        fade: !chart.lines && !alone ? 1 - (0.65 * number) / Math.max(1, names.length - 1) : 1,
        dots: found.every((data) => data.x.length === 1),
      };
      if (entry.runs.length > 1) {
        lines.push({ ...line, ...rotrnn.spread(found.map(curve), 1500), bars: true });
      } else {
        const drawn = curve(found[0]);
        if (drawn.raw) lines.push({ ...line, faint: true, x: drawn.raw.x, y: drawn.raw.y });
        lines.push({ ...line, x: drawn.x, y: drawn.y });
      }
    });
  }
  return lines;
};

// Rows of dygraphs: a step, and a value or nothing for every line.
rotrnn.rowsOf = function (lines, bars, log, positive) {
  const steps = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, i) => [step, i]));
  const rows = steps.map((step) => [step, ...new Array(lines.length).fill(null)]);
  lines.forEach((line, number) => {
    for (let i = 0; i < line.x.length; ++i) {
      const y = line.y[i];
      if (log && !(y > 0)) continue;
      const deviation = line.deviation ? line.deviation[i] : 0;
      let low = y - deviation;
      if (log && !(low > 0)) low = y / 10;
      if (positive) low = Math.max(0, low);
      rows[place.get(line.x[i])][number + 1] = bars ? [low, y, y + deviation] : y;
    }
  });
  return rows;
};

// One card with a chart.
rotrnn.Curve = class {
  constructor(chart, board) {
    this.chart = chart;
    this.board = board;
    const make = rotrnn.make;
    this.box = make("div", { class: "chart", role: "img" });
    this.tip = make("div", { class: "tip", hidden: true });
    this.key = make("span", { class: "key" });
    this.size = make("button", {
      class: "small", type: "button", text: "⤢", title: "large or small", "aria-label": "large or small: " + chart.title,
      on: { click: () => { this.card.classList.toggle("tall"); if (this.graph) this.graph.resize(); } },
    });
    this.card = make("article", { class: "card", id: "chart-" + chart.key }, [
      make("header", {}, [make("h3", { text: chart.title }), this.key, this.size]),
      make("div", { class: "plot" }, [this.box, this.tip]),
    ]);
    this.card.hidden = true;
    this.lines = [];
    if (chart.lines && chart.lines.length > 1) {
      chart.lines.forEach(([, name], i) =>
        this.key.append(make("span", { class: i ? "dash broken" : "dash" }), document.createTextNode(name)));
    }
    new ResizeObserver(() => { if (this.graph && !this.card.hidden) this.graph.resize(); }).observe(this.box);
  }

  draw(entries, options) {
    this.lines = rotrnn.linesOf(this.chart, entries, options);
    this.card.hidden = this.lines.length === 0;
    if (this.card.hidden) return;
    const bars = this.lines.some((line) => line.bars);
    const log = options.log && !this.chart.percent;
    const rows = rotrnn.rowsOf(this.lines, bars, log, this.chart.zero);
    this.rows = rows;
    const css = getComputedStyle(document.documentElement);
    const series = {};
    const labels = ["step", ...this.lines.map((_, i) => "line" + i)];
    this.lines.forEach((line, i) => {
      series["line" + i] = {
        color: line.faint || line.fade < 1 ? rotrnn.withAlpha(line.colour, line.faint ? 0.28 : line.fade) : line.colour,
        strokeWidth: line.faint ? 1 : 1.8,
        strokePattern: line.dash ? [6, 4] : null,
        drawPoints: line.dots || line.x.length === 1,
        pointSize: 4,
      };
    });
    const settings = {
      file: rows, labels, series, customBars: bars, logscale: log,
      includeZero: Boolean(this.chart.zero) && !log,
      gridLineColor: css.getPropertyValue("--grid").trim(),
      axisLineColor: css.getPropertyValue("--line").trim(),
      dateWindow: this.board.zoom || this.board.whole(),
    };
    if (this.graph && this.graph.bars === bars && this.graph.count === this.lines.length) {
      this.graph.updateOptions(settings);
    } else {
      if (this.graph) this.graph.destroy();
      const { file, ...rest } = settings;
      this.graph = new Dygraph(this.box, file, {
        ...rest,
        connectSeparatedPoints: true, legend: "never", showLabelsOnHighlight: false, fillAlpha: 0.17,
        highlightCircleSize: 3, axisLabelFontSize: 11.5, yRangePad: 12, gridLineWidth: 1, labelsUTC: true,
        axes: {
          x: { axisLabelFormatter: rotrnn.short, drawGrid: false, axisLabelWidth: 60, pixelsPerLabel: 70 },
          y: {
            axisLabelFormatter: this.chart.percent ? (v) => Number((100 * v).toPrecision(4)) + " %" : rotrnn.short,
            axisLabelWidth: 52, pixelsPerLabel: 34,
          },
        },
        highlightCallback: (event, step) => this.board.hover(step, this),
        unhighlightCallback: () => this.board.hover(null, this),
        zoomCallback: (low, high) => {
          const [left, right] = this.board.zoom || this.board.whole();
          const still = this.graph.isZoomed("x") && low === left && high === right;  // along y only
          if (!still) this.board.setZoom(this.graph.isZoomed("x") ? [low, high] : null, this.graph);
        },
      });
      this.graph.bars = bars;
      this.graph.count = this.lines.length;
    }
    this.describe();
  }

  // What a screen reader says in place of the picture.
  describe() {
    const parts = this.lines.filter((line) => !line.faint).slice(0, 8).map((line) =>
      `${line.name}: ${this.text(line.y[line.y.length - 1])} at step ${line.x[line.x.length - 1]}`);
    this.box.setAttribute("aria-label", `${this.chart.title}. ${parts.join("; ")}`);
  }

  nearest(step) {
    let best = 0;
    this.rows.forEach((row, i) => { if (Math.abs(row[0] - step) < Math.abs(this.rows[best][0] - step)) best = i; });
    return best;
  }

  text(value) {
    return this.chart.percent ? rotrnn.percent(value) : rotrnn.number(value);
  }

  // The mouse is at a step, in this chart or in another one.
  point(step, here) {
    this.tip.hidden = step === null || !here;
    if (!here && this.graph && !this.card.hidden) {
      if (step === null) this.graph.clearSelection();
      else this.graph.setSelection(this.nearest(step));
    }
    if (this.tip.hidden) return;
    const make = rotrnn.make;
    const lines = this.lines.filter((line) => !line.faint);
    const rows = lines.map((line) => {
      const value = line.x.length === 1 ? line.y[0] : rotrnn.at(line.x, line.y, step);
      const deviation = line.deviation ? rotrnn.at(line.x, line.deviation, step) : 0;
      if (value === null) return null;
      const swatch = make("span", { class: "swatch" });
      swatch.style.setProperty("--run", line.colour);
      return make("div", { class: "line" }, [swatch, make("span", { class: "what", text: line.name }),
        make("span", { class: "number", text: this.text(value) + (deviation ? " ± " + this.text(deviation) : "") })]);
    }).filter(Boolean).slice(0, 10);
    this.tip.replaceChildren(make("div", { text: "step " + Math.round(step).toLocaleString("en-US") }), ...rows);
    const right = this.graph.toDomXCoord(step) < this.box.clientWidth / 2;
    this.tip.style.left = right ? "auto" : "62px";
    this.tip.style.right = right ? "6px" : "auto";
  }
};

rotrnn.withAlpha = function (colour, alpha) {
  if (colour.startsWith("#")) {
    const parts = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
    return `rgba(${parts.join(", ")}, ${alpha})`;
  }
  return colour.replace(")", ` / ${alpha})`);
};

// Its legend would be markup made of names; ours is text.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);
