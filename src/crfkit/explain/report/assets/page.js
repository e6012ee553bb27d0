"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  /* Every text from the data becomes a text node, never markup. */
  const make = (tag, options = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(options)) {
      if (key === "hue") node.style.setProperty("--h", value);
      else if (key === "class") node.className = value;
      else if (key === "width") node.style.width = value;
      else if (key === "left") node.style.left = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const percent = (p) => (p >= 0.9995 ? "100" : p >= 0.0995 ? (100 * p).toFixed(0) : p >= 0.01 ? (100 * p).toFixed(1) : p > 0.00005 ? (100 * p).toFixed(2) : "<0.01") + " %";
  const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);
  const hue = (type) => data.hues[type] ?? 210;

  /* --- colours */
  const themes = ["auto", "light", "dark"];
  const symbols = { auto: "◐", light: "☀", dark: "☾" };
  const spoken = { auto: "as the system has them", light: "light", dark: "dark" };
  const remembered = () => { try { return localStorage.getItem("crfkit-theme"); } catch { return null; } };
  const setTheme = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    at("theme").textContent = `${symbols[name]} ${name}`;
    at("theme").setAttribute("aria-label", `Colours: ${spoken[name]}`);
    at("theme").value = name;
    try { localStorage.setItem("crfkit-theme", name); } catch { /* files may not be allowed to */ }
  };
  const wanted = /[#&]theme=(light|dark)/.exec(location.hash);
  setTheme(wanted ? wanted[1] : themes.includes(remembered()) ? remembered() : "auto");
  at("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(at("theme").value) + 1) % 3]));

  /* --- errors, one at a time */
  if (!data.errors.length) return;
  let shown = data.errors.map((_, k) => k);
  let place = 0;
  let opened = 0;

  const spansOf = (spans, length) => {
    const row = Array.from({ length }, () => null);
    for (const [begin, end, type, p] of spans)
      for (let t = begin; t < end; t++) row[t] = { type, begin: t === begin, end: t === end - 1, p };
    return row;
  };
  const chip = (span, title) => {
    if (!span) return make("span", { class: "span" }, "\u00a0");
    const node = make("span", { class: `span on${span.begin ? " begin" : ""}${span.end ? " end" : ""}`, hue: hue(span.type), title });
    if (span.begin) {
      node.append(span.type);
      if (span.p !== undefined) node.append(make("em", {}, percent(span.p)));
    } else node.append("\u00a0");
    return node;
  };
  const rightToLeft = (words) => /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(words.join("").match(/\p{L}/u)?.[0] ?? "");

  const sentence = (error) => {
    const gold = spansOf(error.gs, error.w.length);
    const found = spansOf(error.ps, error.w.length);
    const wrong = new Map(error.why.map((row, k) => [row[0], k]));
    const box = make("div", { class: "sentence", role: "group", "aria-label": "Sentence: above the given spans, below the predicted ones", dir: rightToLeft(error.w) ? "rtl" : "ltr" });
    error.w.forEach((word, t) => {
      const labels = `${data.labels[error.g[t]]}, predicted ${data.labels[error.p[t]]}`;
      const parts = [chip(gold[t], "given"), make("bdi", { class: "w" }, word), chip(found[t], "predicted")];
      if (!wrong.has(t)) { box.append(make("span", { class: "tok", title: labels }, ...parts)); return; }
      const k = wrong.get(t);
      const button = make("button", { type: "button", class: "tok wrong", title: labels, "aria-pressed": String(k === opened), "aria-label": `${word}: given ${labels}. Show why.` }, ...parts);
      button.addEventListener("click", () => { opened = k; draw(); box.isConnected || at("sentence").querySelectorAll(".wrong")[k].focus(); });
      box.append(button);
    });
    return box;
  };
  const why = (error) => {
    const panel = make("div", { class: "panel", id: "why" });
    const row = error.why[opened];
    if (!row) { panel.append(make("p", { class: "note" }, "There is nothing to explain here.")); return panel; }
    const [t, p, q, difference, terms, rest, count] = row;
    const given = data.labels[error.g[t]];
    panel.append(make("h3", {}, "Why ", data.labels[error.p[t]], " and not ", given, " at ", make("bdi", {}, `“${error.w[t]}”`), "?"));
    if (difference === null) { panel.append(make("p", { class: "note" }, "The model cannot give this label here.")); return panel; }
    panel.append(make("p", { class: "note" }, `Probability ${percent(p)} against ${percent(q)}. The scores of the best labellings with either differ by ${difference.toFixed(2)}, which is the sum of:`));
    const list = make("ul", { class: "bars" });
    const most = Math.max(...terms.map(([x]) => Math.abs(x)), Math.abs(rest), 1e-9);
    const add = (x, name) => {
      const width = 50 * Math.abs(x) / most;
      const bar = make("i", { class: x > 0 ? "for" : "against", width: `${width}%`, left: `${x > 0 ? 50 : 50 - width}%` });
      list.append(make("li", {}, make("span", {}, signed(x)), make("span", { class: "name" }, make("bdi", {}, name)), make("span", { class: "amount", "aria-hidden": "true" }, bar)));
    };
    for (const [x, name] of terms) add(x, data.strings[name]);
    if (count) add(rest, `${count} others`);
    panel.append(list);
    return panel;
  };
  const alternatives = (error) => {
    const panel = make("div", { class: "panel" }, make("h3", {}, "Other readings"));
    const list = make("ol", { class: "alts" });
    const line = (p, ...rest) => list.append(make("li", {}, make("span", {}, percent(p)), make("span", { class: "changes" }, ...rest)));
    line(error.pp, "the labels below the sentence");
    for (const [p, changes] of error.alt)
      line(p, ...changes.flatMap(([t, label], k) => [k ? ", " : "", make("bdi", {}, error.w[t]), " ", make("span", { class: "tag" }, data.labels[label])]));
    line(error.lp === null ? 0 : Math.exp(error.lp), "the given labels");
    panel.append(list);
    return panel;
  };
  const draw = () => {
    const none = shown.length === 0;
    at("place").textContent = none ? "no sentence fits" : `${place + 1} of ${shown.length}`;
    at("previous").disabled = none || place === 0;
    at("next").disabled = none || place === shown.length - 1;
    if (none) { at("sentence").replaceChildren(); return; }
    const error = data.errors[shown[place]];
    opened = Math.min(opened, Math.max(error.why.length - 1, 0));
    const facts = make("div", { class: "rows" }, make("span", {}, `sentence ${error.n}`));
    if (error.k.length) facts.append(make("span", {}, ...error.k.map((kind) => make("span", { class: "tag" }, kind))));
    facts.append(make("span", {}, "above: given · below: predicted, with probabilities"));
    at("sentence").replaceChildren(facts, sentence(error), make("div", { class: "two" }, why(error), alternatives(error)));
  };
  const filter = () => {
    const kind = at("kind")?.value ?? "", type = at("type").value, text = at("text").value.toLowerCase();
    shown = data.errors.map((_, k) => k).filter((k) => {
      const error = data.errors[k];
      return (!kind || error.k.includes(kind))
        && (!type || [...error.gs, ...error.ps].some((span) => span[2] === type && error.why.some(([t]) => span[0] <= t && t < span[1])))
        && (!text || error.w.join(" ").toLowerCase().includes(text));
    });
    if (at("order").value === "worst") shown.sort((a, b) => (data.errors[a].lp ?? -Infinity) - (data.errors[b].lp ?? -Infinity));
    place = 0; opened = 0;
    draw();
  };
  const go = (step) => {
    const next = Math.min(Math.max(place + step, 0), shown.length - 1);
    if (next === place || !shown.length) return;
    place = next; opened = 0;
    draw();
  };
  at("previous").addEventListener("click", () => go(-1));
  at("next").addEventListener("click", () => go(1));
  for (const id of ["kind", "type", "order"]) at(id)?.addEventListener("change", filter);
  at("text").addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
    const step = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1 }[event.key];
    if (step && !(event.key.startsWith("Arrow") && event.target.closest?.(".scroll"))) { event.preventDefault(); go(step); }
  });
  for (const link of document.querySelectorAll("[data-sentence]"))
    link.addEventListener("click", () => {
      const k = data.errors.findIndex((error) => error.n === Number(link.dataset.sentence));
      if (k < 0) return;
      for (const id of ["kind", "type"]) if (at(id)) at(id).value = "";
      at("text").value = "";
      filter();
      place = shown.indexOf(k);
      draw();
    });
  filter();
})();
