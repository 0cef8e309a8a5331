// The board: asks the server for what is new, again and again.
"use strict";

rotrnn.Live = class {
  constructor() {
    this.busy = false;
    this.points = 1200;
    this.pause = 1500;
    this.view = new rotrnn.View(document.getElementById("app"), { title: "rotrnn board", source: this });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.wanted(); });
    this.round();
  }

  async get(path, parameters) {
    const response = await fetch(path + (parameters ? "?" + new URLSearchParams(parameters) : ""), { cache: "no-store" });
    if (response.status === 404) return null;
    if (!response.ok) throw new Error("the server answered with status " + response.status);
    return response.json();
  }

  wanted() {
    clearTimeout(this.timer);
    this.again = this.busy;
    if (!this.busy) this.round();
  }

  async round() {
    this.busy = true;
    let pause = document.hidden ? 8 * this.pause : this.pause;
    try {
      const list = await this.get("/api/runs");
      this.view.setRuns(list.runs, list.now);
      const reading = await this.readRuns(this.view.selected());
      this.view.setComparisons((await Promise.all(list.comparisons.slice(0, 20).map((one) =>
        this.get("/api/compare", { id: one.id })))).filter(Boolean));
      if (reading) pause = 30;
      this.view.say(reading ? `reading, ${Math.round(100 * reading.part)} %`
        : `${list.runs.length} runs${list.all ? "" : ", and more than can be shown"}; up to date ${new Date().toLocaleTimeString()}`);
    } catch (error) {
      this.view.say("The board does not answer; trying again.", true);
      pause = 3000;
    }
    this.busy = false;
    if (this.again) {
      this.again = false;
      pause = 0;
    }
    this.timer = setTimeout(() => this.round(), pause);
  }

  // A few at a time; says how far a large file is read.
  async readRuns(runs) {
    const queue = runs.filter((run) => run.at === undefined || run.more || run.seen !== run.info.updated || this.view.now - run.info.updated < 30);
    let size = 0, read = 0;
    const work = async () => {
      for (let run; (run = queue.shift());) {
        await this.readRun(run);
        size += run.size || 0;
        read += run.read || 0;
      }
    };
    await Promise.all([work(), work(), work(), work()]);
    return runs.some((run) => run.more) ? { part: read / Math.max(1, size) } : null;
  }

  async readRun(run) {
    const updated = run.info.updated;
    const long = Object.values(run.series).some((data) => data.x.length > 2 * this.points + 200);
    const since = run.at !== undefined && !long && !run.more ? run.at : "";
    const answer = await this.get("/api/series", { run: run.info.id, points: this.points, since });
    if (!answer) return;  // gone; the next list says so
    Object.assign(run, { seen: updated, more: answer.more, read: answer.read, size: answer.size, step: answer.step });
    const changed = !answer.append || Object.keys(answer.series).length > 0;
    if (answer.append) this.append(run, answer); else run.series = answer.series;
    run.at = answer.at;
    if (changed && !run.more && run.details !== answer.details) {
      const detail = await this.get("/api/detail", { run: run.info.id });
      if (detail) {
        run.detail = detail;
        run.details = detail.details;
      }
    }
    if (changed && this.view.zoom) await this.readZoom(run);
    if (changed) this.view.update();
  }

  // The answer begins at the last step sent before, whose points it replaces.
  append(run, answer) {
    const from = Number(run.at.split(".")[2]);
    const cut = (x, y) => {
      while (x.length && x[x.length - 1] >= from) {
        x.pop();
        y.pop();
      }
    };
    for (const [name, data] of Object.entries(answer.series)) {
      const own = run.series[name] || (run.series[name] = { x: [], y: [] });
      cut(own.x, own.y);
      own.x.push(...data.x);
      own.y.push(...data.y);
      if (!own.mean_x) continue;
      cut(own.mean_x, own.mean_y);
      own.mean_x.push(...data.x);
      own.mean_y.push(...data.y);
    }
  }

  // Finer points between two steps, when some were left out of the whole.
  async readZoom(run) {
    const range = this.view.zoom;
    if (!range || !Object.values(run.series).some((data) => data.mean_x)) return;
    const answer = await this.get("/api/series", { run: run.info.id, points: this.points, from: Math.floor(range[0]), to: Math.ceil(range[1]) });
    if (answer && range === this.view.zoom) run.zoomed = answer.series;
  }

  zoomed(range) {
    clearTimeout(this.zoomTimer);
    if (!range) return this.view.update();
    this.zoomTimer = setTimeout(async () => {
      try {
        await Promise.all(this.view.selected().map((run) => this.readZoom(run)));
        this.view.update();
      } catch (error) { /* the next round says it */ }
    }, 120);
  }
};

rotrnn.live = new rotrnn.Live();
