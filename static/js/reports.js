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

  function figureOf(plot, colours, width) {
    const source = document.getElementById(plot.dataset.figure);
    return source && fitted(resolve(JSON.parse(source.textContent), colours), width);
  }

  function draw(plot, colours) {
    const width = plot.clientWidth;
    const figure = width && figureOf(plot, colours, width);
    if (!figure) return;
    drawn.set(plot, width);
    window.Plotly.react(plot, figure.data, figure.layout, CONFIG);
  }

  // The figure as a picture: on the surface of the page, under its title, at twice the pixels.
  const PICTURE_PX = 960;
  const TITLE_PX = 40;

  function save(plot, title) {
    const colours = palette();
    const figure = figureOf(plot, colours, PICTURE_PX);
    const surface = colours.value("--surface");
    const text = colours.value("--text");
    colours.close();
    if (!figure) return;
    const { layout } = figure;
    const height = layout.height + TITLE_PX;
    const margin = { ...layout.margin, t: layout.margin.t + TITLE_PX };
    const head = {
      text: title, x: 0, xref: "paper", xanchor: "left", y: 1, yref: "container", yanchor: "top", pad: { t: 14 },
      font: { size: 14, color: text },
    };
    const picture = { ...layout, height, margin, title: head, paper_bgcolor: surface, plot_bgcolor: surface };
    const size = { width: PICTURE_PX, height };
    window.Plotly.toImage({ data: figure.data, layout: picture, config: CONFIG }, { format: "svg", ...size })
      .then((svg) => canvasOf(svg, size))
      .then((canvas) => canvas.toBlob((blob) => download(blob, `${plot.id.replace("plot-", "")}.png`)));
  }

  // By way of an address that holds the picture itself: Plotly's own way needs blob: in the security policy.
  async function canvasOf(svg, size) {
    const image = new Image();
    image.src = svg;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * size.width;
    canvas.height = 2 * size.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // Only where scripts run: without them there is nothing to take a picture of.
  function offer(plot) {
    const card = plot.closest(".card");
    const head = card && card.querySelector(".card-head");
    if (!head || card.querySelector(".as-png")) return;
    const title = head.querySelector("h2").textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button-link as-png";
    button.textContent = "PNG";
    button.setAttribute("aria-label", `PNG of ${title}`);
    button.addEventListener("click", () => save(plot, title));
    head.append(button);
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
      plots().forEach((plot) => {
        resized.observe(plot);
        offer(plot);
      });
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
