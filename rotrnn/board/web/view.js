// The page: runs at the side, charts in the middle. Where the data come from is a source with
// load(run), which live.js has from the server and report.js from the page itself.
"use strict";

rotrnn.Run = class {
  constructor(info, number) {
    this.info = info;
    this.number = number;
    this.selected = false;
    this.series = {};
    this.zoomed = null;  // the same, finer, between two steps
    this.detail = null;
    this.step = -1;
    this.colour = rotrnn.colour(number);
  }

  shown() {
    return this.zoomed || this.series;
  }
};

rotrnn.View = class {
  constructor(root, options) {
    this.options = { smoothing: 0, log: false, seeds: true };
    this.source = options.source;
    this.runs = new Map();
    this.zoom = null;
    this.comparisons = [];
    const saved = this.stored("theme");
    document.documentElement.dataset.theme = saved || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      if (!this.stored("theme")) this.setTheme(event.matches ? "dark" : "light");
    });
    root.replaceChildren(this.build(options));
  }

  // Pages opened as files may have no storage.
  stored(name, value) {
    try {
      if (value === undefined) return localStorage.getItem("rotrnn-" + name);
      localStorage.setItem("rotrnn-" + name, value);
    } catch (error) { /* then nothing is remembered */ }
    return null;
  }

  build(options) {
    const make = rotrnn.make;
    const toggle = (name, text, title) => make("button", {
      type: "button", text, title, id: "toggle-" + name, "aria-pressed": String(this.options[name]),
      on: { click: (event) => {
        this.options[name] = !this.options[name];
        event.currentTarget.setAttribute("aria-pressed", String(this.options[name]));
        this.update();
      } },
    });
    this.status = make("div", { class: "status", role: "status" });
    this.list = make("ul", { class: "runs", "aria-label": "runs" });
    this.filter = make("input", { type: "search", placeholder: "Find runs", "aria-label": "find runs", on: { input: () => this.drawList() } });
    const amount = make("output", { text: "off" });
    const smoothing = make("input", { type: "range", id: "smoothing", min: 0, max: 1, step: 0.02, value: 0, "aria-label": "smoothing",
      on: { input: () => {
        this.options.smoothing = Number(smoothing.value);
        amount.textContent = this.options.smoothing ? Math.round(100 * this.options.smoothing) + " %" : "off";
        this.update();
      } } });
    this.reset = make("button", { type: "button", text: "Reset zoom", id: "reset-zoom", on: { click: () => this.setZoom(null) } });
    this.reset.disabled = true;
    this.curves = rotrnn.charts.map((chart) => new rotrnn.Curve(chart, this));
    this.summary = new rotrnn.Summary();
    this.disks = new rotrnn.Disks();
    this.matrix = new rotrnn.Matrix();
    this.tables = make("div", { class: "cards" });
    const section = (id, title, note, child) => make("section", { id, "aria-labelledby": id + "-title" }, [
      make("h2", { text: title, id: id + "-title" }), note ? make("p", { class: "note", text: note }) : null, child]);
    this.sections = {
      runs: section("runs", "Runs", "", this.summary.box),
      curves: section("curves", "Curves", "Drag to zoom all charts, double-click to see everything again.",
        make("div", { class: "cards" }, this.curves.map((curve) => curve.card))),
      eigenvalues: section("eigenvalues", "Eigenvalues λ in the unit disk",
        "What every block keeps of its state from one step to the next: eigenvalues near the rim remember long, and their angle is the speed of rotation.", this.disks.box),
      confusion: section("confusion", "Confusion", "", this.matrix.box),
      comparisons: section("comparisons", "Comparisons", "", this.tables),
    };
    this.nothing = make("div", { class: "empty", text: "Choose runs at the side." });
    this.nav = make("nav", { "aria-label": "parts of this page" }, Object.entries(this.sections).map(([id, part]) =>
      make("a", { href: "#" + id, text: part.firstChild.textContent, data: { part: id } })));
    const icon = new DOMParser().parseFromString(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="13" fill="none" stroke="#6c7a89" stroke-width="2"/><circle cx="26" cy="10" r="4" fill="#2f81d8"/><circle cx="10" cy="25" r="4" fill="#e0702b"/><circle cx="8" cy="10" r="3" fill="#16a085"/></svg>',
      "image/svg+xml").documentElement;
    icon.setAttribute("aria-hidden", "true");
    return make("div", { class: "layout" }, [
      make("aside", { class: "side", "aria-label": "runs and settings" }, [
        make("div", { class: "brand" }, [icon, make("h1", { text: options.title }),
          make("button", { type: "button", class: "small", id: "theme", text: "◐", title: "dark or light", "aria-label": "dark or light",
            on: { click: () => this.setTheme(rotrnn.theme() === "dark" ? "light" : "dark", true) } })]),
        this.status,
        make("div", { class: "tools" }, [
          make("label", { class: "wide" }, [document.createTextNode("Smoothing"), smoothing, amount]),
          make("div", { class: "row" }, [toggle("log", "Log scale", "logarithmic y axes"),
            toggle("seeds", "Mean ± over seeds", "runs that differ only in the seed as one line with their standard deviation")]),
          make("div", { class: "row" }, [this.reset]),
        ]),
        this.filter,
        make("div", { class: "row" }, [
          make("button", { type: "button", class: "small", text: "All", on: { click: () => this.selectShown(true) } }),
          make("button", { type: "button", class: "small", text: "None", on: { click: () => this.selectShown(false) } }),
          this.count = make("span", { class: "key" })]),
        this.list,
      ]),
      make("main", {}, [this.nav, this.nothing, ...Object.values(this.sections)]),
    ]);
  }

  setTheme(theme, keep) {
    document.documentElement.dataset.theme = theme;
    if (keep) this.stored("theme", theme);
    for (const run of this.runs.values()) run.colour = rotrnn.colour(run.number);
    this.drawList();
    this.update();
  }

  say(text, bad) {
    this.status.textContent = text;
    this.status.classList.toggle("bad", Boolean(bad));
  }

  // Takes over a list of runs: new ones are added, those that are gone are removed.
  setRuns(infos, now) {
    const first = this.runs.size === 0;
    const there = new Set(infos.map((info) => info.id));
    let changed = false;
    for (const id of [...this.runs.keys()]) {
      if (!there.has(id)) changed = this.runs.delete(id) || changed;
    }
    for (const info of infos) {
      const run = this.runs.get(info.id);
      if (run) {
        changed = changed || run.info.updated !== info.updated;
        run.info = info;
        continue;
      }
      changed = true;
      const taken = new Set([...this.runs.values()].map((one) => one.number));
      let number = 0;
      while (taken.has(number)) ++number;
      const fresh = new rotrnn.Run(info, number);
      fresh.selected = !first && now - info.updated < 60;  // it began while the page is open
      this.runs.set(info.id, fresh);
    }
    if (first) {
      const newest = [...this.runs.values()].sort((a, b) => b.info.updated - a.info.updated).slice(0, 8);
      for (const run of newest) run.selected = true;
    }
    this.now = now;
    if (changed || first) {
      this.drawList();
      this.update();
    }
  }

  selected() {
    return [...this.runs.values()].filter((run) => run.selected);
  }

  listed() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return [...this.runs.values()].filter((run) => {
      const text = `${run.info.name} ${run.info.layer} ${run.info.task}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  select(run, selected) {
    run.selected = selected;
    this.drawList();
    this.update();
    this.source.wanted();
  }

  selectShown(selected) {
    for (const run of this.listed()) run.selected = selected;
    this.drawList();
    this.update();
    this.source.wanted();
  }

  drawList() {
    const make = rotrnn.make, listed = this.listed();
    const focused = document.activeElement && document.activeElement.dataset.run;
    const scroll = this.list.scrollTop;
    this.list.replaceChildren(...listed.map((run) => {
      const box = make("input", { type: "checkbox", data: { run: run.info.id }, on: { change: () => this.select(run, box.checked) } });
      box.checked = run.selected;
      const live = this.now - run.info.updated < 15;
      const about = [run.info.layer, run.info.task, run.info.seed >= 0 ? "seed " + run.info.seed : ""].filter(Boolean).join(" · ");
      const item = make("li", {}, [make("label", {}, [box, rotrnn.swatch(run.colour), make("span", { class: "name" }, [
        make("span", { text: run.info.name }),
        make("span", { class: "about" }, [live ? make("span", { class: "live", text: "● live " }) : null, document.createTextNode(about)])])]),
        make("button", { type: "button", class: "only small", text: "only", "aria-label": "only " + run.info.name,
          on: { click: () => { for (const one of this.runs.values()) one.selected = one === run; this.select(run, true); } } })]);
      item.style.setProperty("--run", run.colour);
      return item;
    }));
    this.list.scrollTop = scroll;
    const again = focused && [...this.list.querySelectorAll("input")].find((box) => box.dataset.run === focused);
    if (again) again.focus();
    this.count.textContent = `${this.selected().length} of ${this.runs.size}`;
  }

  // What is drawn as one line: a run, or runs that differ only in the seed.
  entries() {
    const entries = [];
    const groups = new Map();
    for (const run of this.selected()) {
      const group = this.options.seeds && run.info.group;
      if (group && groups.has(group)) {
        groups.get(group).runs.push(run);
        continue;
      }
      const entry = { name: run.info.name, colour: run.colour, runs: [run] };
      if (group) groups.set(group, entry);
      entries.push(entry);
    }
    for (const entry of entries) {
      if (entry.runs.length > 1) entry.name = `${entry.runs[0].info.group_name} (${entry.runs.length} seeds)`;
    }
    return entries;
  }

  // Draws soon, and once for all that changed meanwhile.
  update() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const runs = this.selected(), entries = this.entries();
    this.nothing.hidden = runs.length > 0 || this.comparisons.length > 0;
    this.nothing.textContent = this.runs.size ? "Choose runs at the side." : "No runs yet: new ones appear by themselves.";
    this.sections.curves.hidden = false;  // what is hidden has no size to draw in
    for (const curve of this.curves) curve.draw(entries, this.options);
    this.summary.draw(runs);
    const shown = {
      runs: runs.length > 0,
      curves: this.curves.some((curve) => !curve.card.hidden),
      eigenvalues: this.disks.draw(runs),
      confusion: this.matrix.draw(runs),
      comparisons: this.comparisons.length > 0,
    };
    for (const [id, section] of Object.entries(this.sections)) section.hidden = !shown[id];
    for (const link of this.nav.children) link.hidden = !shown[link.dataset.part];
    if (shown.eigenvalues) this.disks.paint();  // hidden, it had no size
    document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn || 0) + 1);
  }

  setComparisons(tables) {
    const text = JSON.stringify(tables);
    if (text === this.comparisonText) return;
    this.comparisonText = text;
    this.comparisons = tables;
    this.tables.replaceChildren(...tables.map((table) => rotrnn.comparison(table)));
    for (const card of this.tables.children) card.classList.add("tall");
    this.update();
  }

  hover(step, from) {
    for (const curve of this.curves) curve.point(step, curve === from);
  }

  // All steps there are, with a little space at the ends: every chart has the same.
  whole() {
    const last = Math.max(1, ...this.selected().map((run) => run.step));
    return [-0.01 * last, 1.015 * last];
  }

  setZoom(range, from) {
    if (this.zooming) return;  // the charts report it too when they are reset
    this.zooming = true;
    this.zoom = range;
    this.reset.disabled = !range;
    for (const run of this.runs.values()) run.zoomed = null;
    for (const { graph, card } of this.curves) {
      if (!graph || card.hidden) continue;
      if (!range) graph.resetZoom();
      else if (graph !== from) graph.updateOptions({ dateWindow: range });
    }
    this.zooming = false;
    this.source.zoomed(range);
  }
};
