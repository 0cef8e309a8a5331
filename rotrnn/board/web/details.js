// What is not a curve: the table of runs, eigenvalues in the unit disk, confusion matrices, and the
// tables of comparisons.
"use strict";

rotrnn.swatch = function (colour) {
  const swatch = rotrnn.make("span", { class: "swatch" });
  swatch.style.setProperty("--run", colour);
  return swatch;
};

rotrnn.table = function (caption, head, rows) {
  const make = rotrnn.make;
  const cell = (tag, value) => (value instanceof Node
    ? make(tag, {}, [value]) : make(tag, { text: value === null || value === undefined ? "–" : value }));
  return make("div", { class: "scroll" }, [make("table", { "aria-label": caption }, [
    make("thead", {}, [make("tr", {}, head.map((text) => make("th", { scope: "col", text })))]),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((value) => cell("td", value))))),
  ])]);
};

// The state of every selected run.
rotrnn.Summary = class {
  constructor() {
    this.box = rotrnn.make("div", { class: "card" });
  }

  draw(runs) {
    const last = (run, name) => {
      const data = run.series[name];
      return data && data.y.length ? data.y[data.y.length - 1] : null;
    };
    const best = (run, name, better) => {
      const data = run.series[name];
      if (!data || !data.y.length) return null;
      let at = 0;
      data.y.forEach((value, i) => { if (better(value, data.y[at])) at = i; });
      return { value: data.y[at], step: data.x[at] };
    };
    const classes = runs.some((run) => run.series["validation.accuracy"] || run.series["test.accuracy"]);
    const rows = runs.map((run) => {
      const name = rotrnn.make("span", {}, [rotrnn.swatch(run.colour), document.createTextNode(run.info.name)]);
      const found = classes
        ? best(run, "validation.accuracy", (a, b) => a > b) : best(run, "validation.loss", (a, b) => a < b);
      const show = classes ? rotrnn.percent : rotrnn.number;
      const seconds = last(run, "train.seconds");
      return [name, run.info.layer || "–",
        (run.step < 0 ? "–" : run.step.toLocaleString("en-US")) +
          (run.info.steps > 0 ? " / " + run.info.steps.toLocaleString("en-US") : ""),
        rotrnn.number(last(run, "train.loss")), found ? show(found.value) : "–",
        found ? found.step.toLocaleString("en-US") : "–",
        show(last(run, classes ? "test.accuracy" : "test.loss")),
        rotrnn.number(last(run, "train.tokens_per_second")),
        seconds === null ? "–" : (seconds / 60).toFixed(1)];
    });
    this.box.replaceChildren(rotrnn.table("the selected runs",
      ["run", "layer", "step", "train loss", classes ? "best validation" : "least validation loss", "at step",
        classes ? "test" : "test loss", "tokens/s", "minutes"], rows));
  }
};

// Eigenvalues moving over training.
rotrnn.Disks = class {
  constructor() {
    const make = rotrnn.make;
    this.play = make("button", { type: "button", text: "▶ Play", "aria-pressed": "false", on: { click: () => this.toggle() } });
    this.slider = make("input", { type: "range", min: 0, max: 0, value: 0, step: 1, "aria-label": "training step of the eigenvalues",
      on: { input: () => { this.follow = Number(this.slider.value) === this.steps.length - 1; this.paint(); } } });
    this.label = make("output", {});
    this.rim = make("input", { type: "checkbox", on: { change: () => this.paint() } });
    this.disks = make("div", { class: "disks" });
    this.box = make("div", { class: "card" }, [
      make("div", { class: "player" }, [this.play, this.slider, this.label,
        make("label", { title: "radii near 1 are drawn wider apart" }, [this.rim, document.createTextNode(" magnify the rim")])]),
      this.disks,
    ]);
    this.steps = [];
    this.runs = [];
    this.follow = true;
    this.canvases = [];
    new ResizeObserver(() => this.paint()).observe(this.disks);
  }

  draw(runs) {
    this.runs = runs.filter((run) => run.detail && run.detail.lambda.length);
    const before = this.steps[Number(this.slider.value)];
    this.steps = [...new Set(this.runs.flatMap((run) => run.detail.lambda.map((frame) => frame.step)))].sort((a, b) => a - b);
    this.slider.max = Math.max(0, this.steps.length - 1);
    const at = this.steps.findIndex((step) => step >= before);
    this.slider.value = this.follow || at < 0 ? this.steps.length - 1 : at;
    const layers = Math.max(0, ...this.runs.map((run) => run.detail.lambda[0].layers.length));
    if (this.canvases.length !== layers) {
      this.canvases = Array.from({ length: layers }, () => rotrnn.make("canvas", { role: "img" }));
      this.disks.replaceChildren(...this.canvases.map((canvas, i) => rotrnn.make("figure", {}, [
        canvas, rotrnn.make("figcaption", { text: "block " + (i + 1) })])));
    }
    this.paint();
    return this.runs.length > 0;
  }

  toggle() {
    if (this.timer) return this.halt();
    if (Number(this.slider.value) >= this.steps.length - 1) this.slider.value = 0;
    this.follow = false;
    this.play.textContent = "❚❚ Pause";
    this.play.setAttribute("aria-pressed", "true");
    this.timer = setInterval(() => {
      if (Number(this.slider.value) >= this.steps.length - 1) {
        this.follow = true;
        return this.halt();
      }
      this.slider.value = Number(this.slider.value) + 1;
      this.paint();
    }, 120);
  }

  halt() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶ Play";
    this.play.setAttribute("aria-pressed", "false");
  }

  // Radii as drawn: as they are, or with the rim pulled apart, where slow modes live.
  radius(r) {
    if (!this.rim.checked) return Math.min(r, 1.12);
    return r <= 1 ? 1 - Math.pow(1 - r, 0.35) : Math.min(1.12, 1 + Math.pow(r - 1, 0.35));
  }

  paint() {
    const step = this.steps[Number(this.slider.value)];
    this.label.textContent = step === undefined ? "" : "step " + step.toLocaleString("en-US");
    this.slider.setAttribute("aria-valuetext", this.label.textContent);
    const css = getComputedStyle(document.documentElement);
    const grid = css.getPropertyValue("--line").trim(), soft = css.getPropertyValue("--soft").trim();
    this.canvases.forEach((canvas, layer) => {
      const size = canvas.clientWidth;
      if (!size) return;
      const scale = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(size * scale)) canvas.width = canvas.height = Math.round(size * scale);
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, size, size);
      const middle = size / 2, unit = size / 2 / 1.14;
      const place = (re, im) => {
        const r = Math.hypot(re, im), factor = r > 0 ? this.radius(r) / r : 0;
        return [middle + re * factor * unit, middle - im * factor * unit];
      };
      context.lineWidth = 1;
      for (const r of this.rim.checked ? [0.5, 0.9, 0.99, 0.999, 1] : [0.25, 0.5, 0.75, 1]) {
        context.strokeStyle = r === 1 ? soft : grid;
        context.beginPath();
        context.arc(middle, middle, this.radius(r) * unit, 0, 2 * Math.PI);
        context.stroke();
        if (this.rim.checked && r >= 0.9 && r < 1) {
          context.fillStyle = soft;
          context.font = "9.5px sans-serif";
          context.fillText(String(r), middle + 3, middle - this.radius(r) * unit - 2);
        }
      }
      context.strokeStyle = grid;
      context.beginPath();
      context.moveTo(middle - 1.1 * unit, middle);
      context.lineTo(middle + 1.1 * unit, middle);
      context.moveTo(middle, middle - 1.1 * unit);
      context.lineTo(middle, middle + 1.1 * unit);
      context.stroke();
      let count = 0;
      for (const run of this.runs) {
        const frames = run.detail.lambda.filter((frame) => frame.step <= step && frame.layers[layer]);
        if (!frames.length) continue;
        const now = frames[frames.length - 1].layers[layer];
        count += now.length / 2;
        context.strokeStyle = rotrnn.withAlpha(run.colour, 0.3);
        context.beginPath();
        for (let i = 0; i + 1 < now.length; i += 2) {
          frames.forEach((frame, k) => {
            if (frame.layers[layer].length !== now.length) return;
            const [x, y] = place(frame.layers[layer][i], frame.layers[layer][i + 1]);
            if (k) context.lineTo(x, y); else context.moveTo(x, y);
          });
        }
        context.stroke();
        context.fillStyle = run.colour;
        for (let i = 0; i + 1 < now.length; i += 2) {
          const [x, y] = place(now[i], now[i + 1]);
          context.beginPath();
          context.arc(x, y, 2.6, 0, 2 * Math.PI);
          context.fill();
        }
      }
      canvas.setAttribute("aria-label", `block ${layer + 1}: ${count} eigenvalues in the unit disk at step ${step}`);
    });
  }
};

// Which class is predicted as which.
rotrnn.Matrix = class {
  constructor() {
    const make = rotrnn.make;
    this.choice = make("select", { "aria-label": "run and split of the confusion matrix", on: { change: () => this.paint() } });
    this.place = make("div", { class: "scroll" });
    this.box = make("div", { class: "card" }, [make("p", { class: "row" }, [this.choice,
      make("span", { class: "key", text: "rows: true class; columns: predicted class; shade: share of the row" })]), this.place]);
    this.items = [];
  }

  draw(runs) {
    const before = this.choice.value;
    this.items = runs.flatMap((run) => ["test", "validation"]
      .filter((split) => run.detail && run.detail.confusion[split])
      .map((split) => ({ key: run.info.id + split, text: `${run.info.name}, ${split}`, matrix: run.detail.confusion[split] })));
    this.choice.replaceChildren(...this.items.map((item) =>
      rotrnn.make("option", { value: item.key, text: `${item.text}, step ${item.matrix.step}` })));
    if (this.items.some((item) => item.key === before)) this.choice.value = before;
    this.paint();
    return this.items.length > 0;
  }

  paint() {
    const item = this.items.find((one) => one.key === this.choice.value);
    if (!item) return this.place.replaceChildren();
    const make = rotrnn.make, { counts, classes } = item.matrix;
    const name = (i) => (classes.length ? classes[i] : String(i));
    const body = counts.map((row, i) => {
      const sum = row.reduce((a, b) => a + b, 0) || 1;
      return make("tr", {}, [make("th", { scope: "row", text: name(i), title: name(i) }), ...row.map((count, j) => {
        const part = count / sum;
        const cell = make("td", { text: count, class: part > 0.6 ? "strong" : false,
          title: `${name(i)} predicted as ${name(j)}: ${count} (${(100 * part).toFixed(1)} %)` });
        cell.style.setProperty("--part", part.toFixed(3));
        return cell;
      })]);
    });
    this.place.replaceChildren(make("table", { class: counts.length > 16 ? "matrix many" : "matrix", "aria-label": "confusion matrix of " + item.text }, [
      make("thead", {}, [make("tr", {}, [make("td", {}), ...counts.map((_, j) => make("th", { scope: "col", text: name(j), title: name(j) }))])]),
      make("tbody", {}, body)]));
  }
};

rotrnn.comparison = function (table) {
  const make = rotrnn.make, number = rotrnn.number;
  const budget = table.budget || {};
  const head = ["variant", "test accuracy", "chance", "seeds", "parameters", "state", "steps", "tokens/s", "memory", "min/cell"];
  const rows = table.variants.map((v) => {
    const a = v.test_accuracy || {};
    const several = v.finished > 1 && a.deviation !== undefined;
    return [String(v.name), a.mean === undefined || a.mean === null ? "–"
      : several ? `${(100 * a.mean).toFixed(2)} ± ${(100 * a.deviation).toFixed(2)} %` : rotrnn.percent(a.mean),
      v.majority_share === undefined ? "–" : rotrnn.percent(v.majority_share),
      `${v.finished ?? 0}/${v.cells ?? "?"}`, number(v.parameters), number(v.state), number(v.steps),
      number(v.tokens_per_second), v.peak_memory_mb === undefined ? "–" : number(Math.round(v.peak_memory_mb)) + " MB",
      v.minutes_per_cell === undefined ? "–" : Number(v.minutes_per_cell).toFixed(2)];
  });
  const text = budget.minutes ? `${budget.minutes} minutes for every cell` : budget.steps ? `${number(budget.steps)} steps for every cell` : "";
  return make("article", { class: "card comparison" }, [
    make("header", {}, [make("h3", { text: String(table.name) }), make("span", { class: "key", text: [table.task, text, table.finished ? "" : "not finished"].filter(Boolean).join(" · ") })]),
    rotrnn.table("comparison " + table.name, head, rows),
    table.command ? make("p", { class: "note" }, [make("code", { text: String(table.command) })]) : null]);
};
