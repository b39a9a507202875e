"use strict";
// Draws the figures of html_plot.py as SVG: bars, curves and flame graphs. Texts are text nodes, colours of axes are
// the style sheet's.
const Plots = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const TEXT = 12, CHARACTER = 6.8, ROW = 24;

  function add(parent, name, attributes = {}, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  const known = (values) => values.filter((each) => each !== null && Number.isFinite(each));
  const told = (value) => Number(value.toPrecision(4)).toLocaleString("en");

  function ticks(low, high, most) {
    const rough = (high - low) / Math.max(1, most), unit = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= rough) || unit;
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
    return found;
  }

  // "batch {0}\n{name} {1} ms": what plots say of a point, in lines.
  function words(trace, at) {
    const filled = (trace.hover || "{name}: {y}").replace(/\{(\w+)\}/g, (_, key) => {
      const value = key === "name" ? trace.name : key in trace ? trace[key][at] : trace.facts[at][key];
      return typeof value === "number" ? told(value) : value;
    });
    return filled.split("\n");
  }

  function tip(svg, lines, x, y) {
    svg.querySelector(".hoverlayer")?.remove();
    if (!lines) return;
    const layer = add(svg, "g", { class: "hoverlayer" });
    const width = Math.max(...lines.map((each) => each.length)) * CHARACTER + 16, height = lines.length * 17 + 8;
    const left = Math.max(2, Math.min(x + 12, svg.clientWidth - width - 2)), top = Math.max(2, y - height - 8);
    add(layer, "rect", { x: left, y: top, width, height, rx: 4 });
    const text = add(layer, "text", {});
    lines.forEach((line, n) => add(text, "tspan", { x: left + 8, y: top + 18 + n * 17 }, line));
  }

  function canvas(place, height) {
    const width = Math.max(260, place.printed || place.clientWidth);
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({ class: "main-svg", width, height, "font-size": TEXT, "aria-hidden": "true" })) svg.setAttribute(name, value);
    place.querySelector(".main-svg")?.remove();
    place.append(svg);
    return { svg, width };
  }

  function legend(place, traces) {
    const list = document.createElement("ul");
    list.className = "legend";
    for (const trace of traces) {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = trace.color;
      item.append(swatch, ` ${trace.name}`);
      list.append(item);
    }
    place.append(list);
  }

  // Bars with their places.
  function boxes(traces) {
    return traces.map((trace) => trace.x.map((length, at) => (
      { from: trace.base[at], to: trace.base[at] + length, row: trace.y[at], at, size: trace.size || 0.8 }
    )));
  }

  // Curves, one on top of the other where they form a stack.
  function curves(traces, form) {
    let below = null;
    return traces.map((trace) => {
      const floor = form === "stack" ? below : null;
      const top = trace.y.map((value, at) => (value === null ? null : value + (floor?.[at] || 0)));
      below = top;
      return { top, floor };
    });
  }

  function axes(place, figure) {
    const { data, layout } = figure, { rows } = layout, bars = Boolean(rows);
    const all = bars ? boxes(data) : curves(data, layout.form);
    const { svg, width } = canvas(place, layout.height);
    const xs = known(bars ? all.flat().flatMap((each) => [each.from, each.to]) : data.flatMap((trace) => trace.x));
    const whole = [Math.min(...xs), Math.max(...xs)];
    place.layout ||= { xaxis: { range: layout.range || whole, whole } };
    const [low, high] = place.layout.xaxis.range;
    const longest = rows ? Math.max(...rows.map((each) => each.length)) : 6;
    const room = { l: Math.min(width * 0.35, longest * CHARACTER + 14), r: 14, t: 22, b: 44 };
    const inner = { w: width - room.l - room.r, h: layout.height - room.t - room.b };
    const x = (value) => room.l + ((value - low) / (high - low || 1)) * inner.w;
    const top = layout.top ?? (Math.max(0, ...known(rows ? [] : all.flatMap((each) => each.top))) * 1.05 || 1);
    const band = rows ? inner.h / rows.length : 0;
    const y = (value) => (rows ? room.t + rows.indexOf(value) * band : room.t + inner.h * (1 - value / top));
    const grid = add(svg, "g", { class: "grid" });
    for (const tick of ticks(low, high, inner.w / 90)) {
      add(grid, "line", { x1: x(tick), x2: x(tick), y1: room.t, y2: room.t + inner.h });
      add(grid, "text", { x: x(tick), y: layout.height - 26, "text-anchor": "middle" }, told(tick));
    }
    for (const row of rows || []) {
      const name = add(grid, "text", { x: room.l - 8, y: y(row) + band / 2 + 4, "text-anchor": "end" }, row);
      if (row.length * CHARACTER > room.l) name.setAttribute("textLength", room.l - 14);
    }
    for (const tick of rows ? [] : ticks(0, top, inner.h / 45)) {
      add(grid, "line", { x1: room.l, x2: room.l + inner.w, y1: y(tick), y2: y(tick) });
      add(grid, "text", { x: room.l - 6, y: y(tick) + 4, "text-anchor": "end" }, told(tick));
    }
    add(grid, "text", { x: room.l + inner.w / 2, y: layout.height - 6, "text-anchor": "middle" }, layout.x);
    add(grid, "text", { x: 2, y: 12 }, layout.y || "");
    const area = add(svg, "svg", { x: room.l, y: room.t, width: inner.w, height: inner.h, viewBox: `${room.l} ${room.t} ${inner.w} ${inner.h}` });
    add(area, "rect", { class: "nsewdrag", x: room.l, y: room.t, width: inner.w, height: inner.h, fill: "transparent" });
    data.forEach((trace, number) => {
      const group = add(area, "g", { class: "trace" });
      if (bars) drawBars(group, trace, all[number], { x, y, band, range: place.layout.xaxis.range });
      else drawCurve(group, trace, all[number], layout.form, { x, y });
    });
    hover(svg, figure, { bars, x, room, inner });
    zoom(place, svg, figure, { low, high, room, inner });
  }

  function drawBars(group, trace, places, { x, y, band, range }) {
    for (const one of places) {
      if (one.to < range[0] || one.from > range[1]) continue;
      const left = x(one.from), wide = Math.max(0.5, x(one.to) - left), high = band * one.size;
      const path = add(group, "path", { d: `M${left.toFixed(2)},${(y(one.row) + (band - high) / 2).toFixed(2)}h${wide.toFixed(2)}v${high.toFixed(2)}h${(-wide).toFixed(2)}Z`, fill: trace.color });
      path.said = () => words(trace, one.at);
    }
  }

  // How each form is drawn: whether in steps, how thick, and how opaque what is below.
  const FORMS = { stack: [true, 0.8, 0.45] };

  function drawCurve(group, trace, { top, floor }, form, { x, y }) {
    const [steps, thick, opacity] = FORMS[form] || [false, 1.6, 0];
    let path = "", last = null;
    const points = [];
    trace.x.forEach((value, at) => {
      if (value === null || top[at] === null) { last = null; return; }
      const place = [x(value).toFixed(1), y(top[at]).toFixed(1)];
      path += last === null ? `M${place}` : steps ? `H${place[0]}V${place[1]}` : `L${place}`;
      points.push([place[0], y(floor?.[at] || 0).toFixed(1), place[1]]);
      last = place;
    });
    if (opacity && points.length) {
      let area = `M${points[0][0]},${points[0][1]}`;
      points.forEach(([px, , py]) => { area += steps ? `H${px}V${py}` : `L${px},${py}`; });
      for (const [px, py] of [...points].reverse()) area += steps ? `V${py}H${px}` : `L${px},${py}`;
      add(group, "path", { d: `${area}Z`, fill: trace.color, "fill-opacity": opacity });
    }
    add(group, "path", { d: path, fill: "none", stroke: trace.color, "stroke-width": thick });
  }

  function hover(svg, { data }, { bars, x, room, inner }) {
    svg.addEventListener("pointerleave", () => tip(svg, null));
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
      if (bars) return tip(svg, event.target.said?.(), px, py);
      if (px < room.l || px > room.l + inner.w) return tip(svg, null);
      tip(svg, data.flatMap((trace) => {
        let best = -1, away = Infinity;
        trace.x.forEach((value, at) => {
          const far = value === null || trace.y[at] === null ? Infinity : Math.abs(x(value) - px);
          if (far < away) [best, away] = [at, far];
        });
        return best < 0 ? [] : words(trace, best);
      }), px, py);
    });
  }

  function view(place, figure, range) {
    const { whole } = place.layout.xaxis;
    place.layout.xaxis.range = [Math.max(whole[0], range[0]), Math.min(whole[1], range[1])];
    axes(place, figure);
  }

  function zoom(place, svg, figure, { low, high, room, inner }) {
    const value = (px) => low + (Math.max(0, Math.min(inner.w, px - room.l)) / inner.w) * (high - low);
    let from = null;
    const where = (event) => event.clientX - svg.getBoundingClientRect().left;
    svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") from = where(event); });
    svg.addEventListener("pointerup", (event) => {
      const [start, end] = [from, where(event)];
      from = null;
      if (start !== null && Math.abs(end - start) > 6) view(place, figure, [value(Math.min(start, end)), value(Math.max(start, end))]);
    });
    svg.addEventListener("dblclick", () => view(place, figure, place.layout.xaxis.whole));
  }

  // For keyboards and fingers, of a plot that does not begin with all it has.
  function tools(place, figure) {
    const moves = { Earlier: [-0.8, 1], Later: [0.8, 1], "Zoom in": [0, 0.5], "Zoom out": [0, 2], All: [0, Infinity] };
    const bar = document.createElement("div");
    bar.className = "tools";
    for (const [name, [shift, factor]] of Object.entries(moves)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => {
        const { range: [a, b], whole } = place.layout.xaxis, half = ((b - a) / 2) * factor, middle = (a + b) / 2 + (b - a) * shift;
        view(place, figure, factor === Infinity || middle + half < whole[0] || middle - half > whole[1] ? (factor === Infinity ? whole : [a, b]) : [middle - half, middle + half]);
      });
      bar.append(button);
    }
    place.append(bar);
  }

  // Kinds of boxes differ in shape too; style.css has their colours, which keep 4.5:1 to the text over them.
  const PATTERNS = { yours: "M0,7L7,0" };

  function flame(place, figure) {
    const trace = figure.data[place.chosen], { parents, labels, values } = trace;
    const { svg, width } = canvas(place, figure.layout.height);
    const children = new Map();
    parents.forEach((parent, at) => children.set(parent, [...(children.get(parent) || []), at]));
    const shapes = add(svg, "defs");
    for (const [kind, d] of Object.entries(PATTERNS)) {
      const drawn = add(shapes, "pattern", { id: `${place.id}-${kind}`, width: 7, height: 7, patternUnits: "userSpaceOnUse" });
      add(drawn, "path", { d, class: `ink ${kind}` });
    }
    function box(parent, kind, at, left, top, wide) {
      const facts = trace.facts[at], of = facts[3];
      const group = add(parent, "g", { class: `${kind} ${of}`, tabindex: kind === "pathbar" ? 0 : -1 });
      const inside = add(group, "svg", { x: left, y: top, width: Math.max(0.5, wide - 1), height: ROW - 1 });
      add(inside, "rect", { class: "ground", width: "100%", height: "100%" });
      if (of in PATTERNS) add(inside, "rect", { width: "100%", height: "100%", fill: `url(#${place.id}-${of})` });
      add(inside, "text", { x: 5, y: 16 }, labels[at]);
      const go = () => { place.root = at; flame(place, figure); };
      group.addEventListener("click", go);
      group.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
      group.addEventListener("pointermove", (event) => {
        const on = svg.getBoundingClientRect();
        tip(svg, [labels[at], facts[0], `${facts[1]} of the stage, ${facts[2]} samples`, facts[3]], event.clientX - on.left, event.clientY - on.top + 90);
      });
      group.classList.toggle("unlike", Boolean(place.sought) && !labels[at].toLowerCase().includes(place.sought));
    }
    svg.addEventListener("pointerleave", () => tip(svg, null));
    const path = [];
    for (let at = parents[place.root]; at >= 0; at = parents[at]) path.unshift(at);
    path.forEach((at, n) => box(svg, "pathbar", at, (n * width) / path.length, 2, width / path.length));
    function below(at, left, depth, wide) {
      if (wide < 1.5) return;
      box(svg, "slice", at, left, 30 + depth * ROW, wide);
      let from = left;
      for (const child of children.get(at) || []) {
        const part = (wide * values[child]) / values[at];
        below(child, from, depth + 1, part);
        from += part;
      }
    }
    below(place.root, 0, 0, width);
  }

  function finder(place, figure) {
    const field = document.createElement("input");
    field.type = "search";
    field.className = "find";
    field.placeholder = "Find a function";
    field.setAttribute("aria-label", `Find a function: ${place.getAttribute("aria-label")}`);
    field.addEventListener("input", () => { place.sought = field.value.trim().toLowerCase(); flame(place, figure); });
    place.append(field);
  }

  return {
    draw(place, figure) {
      const icicle = Boolean(figure.data[0].parents);
      if (!place.childElementCount) {
        [place.chosen, place.root] = [0, 0];
        if (icicle) finder(place, figure);
        else if (figure.data.length > 1 || figure.layout.legend) legend(place, figure.data);
        if (figure.layout.range) tools(place, figure);
      }
      (icicle ? flame : axes)(place, figure);
    },
    choose(place, figure, number) { [place.chosen, place.root] = [number, 0]; flame(place, figure); },
  };
})();
