// The report: everything is in the page already.
"use strict";

rotrnn.report = (function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const source = { wanted() {}, zoomed() { view.update(); } };
  const view = new rotrnn.View(document.getElementById("app"), { title: data.title, source });
  view.setRuns(data.list.runs, data.list.now);
  for (const run of view.runs.values()) {
    const found = data.runs[run.info.id];
    run.selected = true;
    run.series = found.curves.series;
    run.step = found.curves.step;
    run.detail = found.detail;
  }
  view.drawList();
  view.setComparisons(data.comparisons);
  view.say("written " + data.written);
  view.update();
  return view;
})();
