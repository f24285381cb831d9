// Charts and filters of the reports. Figures come from the server as JSON; colours in them are names of CSS
// variables, looked up when a chart is drawn, so that it follows the theme.
(() => {
  "use strict";

  const NARROW_PX = 560;
  const CONFIG = { displayModeBar: false, responsive: false, showTips: false, locale: "en" };

  // The computed colour of a variable. color-mix() computes to color(srgb r g b / a), which Plotly does not
  // know, so it is written as rgba().
  function palette() {
    const probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
    const known = new Map();
    function colour(name) {
      probe.style.color = `var(${name})`;
      const value = getComputedStyle(probe).color;
      const mixed = value.match(/^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/);
      if (!mixed) return value;
      const [r, g, b] = mixed.slice(1, 4).map((part) => Math.round(parseFloat(part) * 255));
      return `rgba(${r},${g},${b},${mixed[4] || 1})`;
    }
    return {
      value(name) {
        if (!known.has(name)) {
          const font = name === "--font" && getComputedStyle(document.documentElement).getPropertyValue(name).trim();
          known.set(name, font || colour(name));
        }
        return known.get(name);
      },
      close() { probe.remove(); },
    };
  }

  function resolve(node, colours) {
    if (typeof node === "string") {
      const name = node.match(/^var\((--[\w-]+)\)$/);
      return name ? colours.value(name[1]) : node;
    }
    if (Array.isArray(node)) return node.map((item) => resolve(item, colours));
    if (node && typeof node === "object") {
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, resolve(value, colours)]));
    }
    return node;
  }

  // Labels on an axis that would meet: keep every second, or every third.
  function thin(axis, width, labelPx) {
    if (!axis || !axis.ticktext) return;
    const fit = Math.max(2, Math.floor(width / labelPx));
    const step = Math.ceil(axis.ticktext.length / fit);
    axis.tickvals = axis.tickvals.filter((_, i) => i % step === 0);
    axis.ticktext = axis.ticktext.filter((_, i) => i % step === 0);
  }

  function fitted(figure, width) {
    const { data, layout } = figure;
    layout.width = width;
    const inner = width - layout.margin.l - layout.margin.r;
    thin(layout.xaxis, inner, 44);
    if (width < NARROW_PX) {
      data.forEach((trace) => { if (trace.type === "heatmap") delete trace.texttemplate; });
    }
    return figure;
  }

  const drawn = new Map();

  function draw(plot, colours) {
    const source = document.getElementById(plot.dataset.figure);
    const width = plot.clientWidth;
    if (!source || !width) return;
    const figure = fitted(resolve(JSON.parse(source.textContent), colours), width);
    drawn.set(plot, width);
    window.Plotly.react(plot, figure.data, figure.layout, CONFIG);
  }

  function drawAll(plots) {
    const colours = palette();
    plots.forEach((plot) => draw(plot, colours));
    colours.close();
  }

  // Those that stand on the page now: parts of it may be swapped.
  const plots = () => [...document.querySelectorAll(".plot[data-figure]")];
  const drawThem = () => drawAll(plots());

  function start() {
    const resized = new ResizeObserver((entries) => {
      const changed = entries.map((entry) => entry.target).filter((plot) => drawn.get(plot) !== plot.clientWidth);
      if (changed.length) drawAll(changed);
    });
    const follow = () => {
      drawThem();
      plots().forEach((plot) => resized.observe(plot));
    };
    follow();
    document.body.addEventListener("htmx:afterSwap", follow);
    document.body.addEventListener("weir:theme", drawThem);
    document.body.addEventListener("weir:swapped", drawThem);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawThem);
  }

  if (window.Plotly) start();

  const form = document.getElementById("filters");
  if (!form) return;

  form.addEventListener("change", (event) => {
    if (event.target.closest("[data-autosubmit]")) form.requestSubmit();
  });

  // A short address: what narrows nothing is left out, and typed days replace a named range.
  form.addEventListener("submit", () => {
    const fields = [...form.elements].filter((field) => field.name);
    const typed = fields.some((field) => (field.name === "from" || field.name === "to") && field.value);
    fields.forEach((field) => {
      if (field.value === "" || (typed && field.name === "range")) field.disabled = true;
    });
  });

  // Going back shows the form as it was sent; it must be usable again.
  window.addEventListener("pageshow", () => {
    [...form.elements].forEach((field) => { field.disabled = false; });
  });
})();
