"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const said = document.getElementById("said");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = innerWidth < 640;
  const AXES = ["xaxis", "yaxis"];

  // The colours are the style sheet's, so that light, dark and print need no list of their own here.
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function themed(layout) {
    const change = {
      "font.color": color("--text"), "hoverlabel.bgcolor": color("--card"), "hoverlabel.font.color": color("--text"),
      "hoverlabel.bordercolor": color("--line"), "modebar.color": color("--dim"),
      "modebar.activecolor": color("--text"), "modebar.bgcolor": "rgba(0,0,0,0)",
    };
    if (!layout.xaxis) return change;
    for (const axis of AXES) {
      for (const part of ["gridcolor", "linecolor", "zerolinecolor"]) change[`${axis}.${part}`] = color("--grid");
    }
    return change;
  }

  // What plots have in common, as plotly.js' own defaults for each kind of trace.
  const TEMPLATE = {
    layout: { margin: { l: 60, r: 12, t: 8, b: 48 }, hoverlabel: { align: "left" },
      xaxis: { automargin: true }, yaxis: { automargin: true },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" } },
    data: { icicle: [{
      branchvalues: "total", sort: false, leaf: { opacity: 1 }, tiling: { orientation: "v", pad: 0 },
      pathbar: { thickness: 22, side: "top" }, textposition: "middle left", textinfo: "label",
      insidetextfont: { color: "#14171b" }, outsidetextfont: { color: "#14171b" },
      marker: { line: { width: 1, color: "#ffffff" }, pattern: { size: 7, solidity: 0.25, fillmode: "replace" } },
      hovertemplate: "%{label}<br>%{customdata[0]}<br>%{customdata[1]} of the stage, %{customdata[2]} samples<br>%{customdata[3]}<extra></extra>",
    }] },
  };

  function withTheme(layout) {
    const full = { ...layout, template: TEMPLATE, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13 } };
    for (const [path, value] of Object.entries(themed(layout))) {
      const names = path.split(".");
      let at = full;
      for (const name of names.slice(0, -1)) { at[name] = { ...at[name] }; at = at[name]; }
      at[names[names.length - 1]] = value;
    }
    if (narrow) {  // the legend takes more lines there
      full.height += 110;
      full.margin = { ...TEMPLATE.layout.margin, ...full.margin, l: 8, r: 8 };
      full.legend = { font: { size: 11 } };
      full.font.size = 11;
    }
    if (full.xaxis?.rangeslider) full.xaxis.rangeslider.bgcolor = "rgba(128,128,128,0.12)";
    return full;
  }

  const plots = [...document.querySelectorAll(".plot")].filter((place) => place.id in figures);
  // The buttons are named one by one: plotly.js' own set has one that uploads the plot.
  const config = { responsive: true, displaylogo: false, plotlyServerURL: "", displayModeBar: narrow ? false : "hover",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]] };

  const boxed = { ...config, modeBarButtons: [["toImage"]] };  // without axes there is nothing to zoom by a drag

  async function drawAll() {
    for (const place of plots) {
      const figure = figures[place.id];
      await Plotly.newPlot(place, figure.data, withTheme(figure.layout), figure.layout.xaxis ? config : boxed);
      place.dataset.drawn = "yes";
    }
    document.documentElement.dataset.ready = "yes";
  }
  const repaint = (more = {}) => { for (const place of plots) if (place.dataset.drawn) Plotly.relayout(place, { ...themed(figures[place.id].layout), ...more }); };

  for (const group of document.querySelectorAll(".switch")) {
    group.addEventListener("change", (event) => {
      const place = document.getElementById(group.dataset.plot);
      const chosen = Number(event.target.value);
      Plotly.restyle(place, { visible: figures[place.id].data.map((_, number) => number === chosen) });
      said.textContent = `${place.getAttribute("aria-label")}: ${event.target.parentElement.textContent.trim()}`;
    });
  }

  drawAll();
  dark.addEventListener("change", () => repaint());

  // On paper: light, as wide as a page, and nothing folded away.
  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details:not([open])")) { each.open = true; each.dataset.folded = "yes"; }
    repaint({ width: 680, autosize: false });
  });
  addEventListener("afterprint", () => {
    for (const each of document.querySelectorAll("details[data-folded]")) { each.open = false; delete each.dataset.folded; }
    repaint({ width: null, autosize: true });
  });

  async function copy(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const done = await copy(button.parentElement.querySelector("code").textContent);
      button.textContent = done ? "Copied" : "Select it";
      said.textContent = done ? "The code was copied." : "The code could not be copied: select it by hand.";
      button.focus();
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 2000);
    });
  }
})();
