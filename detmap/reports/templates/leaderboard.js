const data = JSON.parse(document.getElementById("data").textContent);
const svg = (tag, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// The table of models: rows are filtered by a word, columns are selected, and the visible part is saved as CSV or JSON.
const models = document.getElementById("models"), board = document.querySelector(".tools.board");
if (board) {
  const [filter, count] = [document.getElementById("filter"), document.getElementById("count")];
  const rows = [...models.tBodies[0].rows], heads = [...models.tHead.rows[0].cells];
  const names = heads.map((cell) => cell.textContent);
  function show(column, shown) {
    for (const row of [models.tHead.rows[0], ...rows]) row.cells[column].hidden = !shown;
  }
  heads.forEach((head, i) => {
    if (rows.some((row) => row.cells[i].matches("th"))) return;  // the names of models cannot be hidden
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !("aside" in head.dataset);
    box.addEventListener("change", () => show(i, box.checked));
    label.append(box, " ", head.classList.contains("chart") ? "intervals" : names[i]);
    board.querySelector(".columns").append(label);
    show(i, box.checked);
  });
  filter.addEventListener("input", () => {
    const sought = filter.value.trim().toLowerCase();
    let kept = 0;
    for (const row of rows) kept += !(row.hidden = !row.textContent.toLowerCase().includes(sought));
    count.textContent = sought ? `${kept} of ${rows.length}` : "";
  });
  function records() {
    const columns = heads.map((head, i) => i).filter((i) => !heads[i].hidden && !heads[i].classList.contains("chart"));
    const value = (row, i) => {
      const text = row.cells[i].dataset.value;
      return text !== "" && !heads[i].classList.contains("text") && !row.cells[i].matches("th") ? Number(text) : text || null;
    };
    const shown = [...models.tBodies[0].rows].filter((row) => !row.hidden);
    return shown.map((row) => Object.fromEntries(columns.map((i) => [names[i], value(row, i)])));
  }
  const quoted = (value) => (/[",\r\n]/.test((value = String(value ?? ""))) ? `"${value.replaceAll('"', '""')}"` : value);
  function csv() {
    const found = records();
    return [Object.keys(found[0] ?? {}), ...found.map(Object.values)].map((row) => row.map(quoted).join(",") + "\r\n").join("");
  }
  for (const button of board.querySelectorAll("button[data-as]")) {
    button.addEventListener("click", () => {
      const form = button.dataset.as, text = form === "csv" ? csv() : JSON.stringify(records(), null, 1) + "\n";
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: form === "csv" ? "text/csv" : "application/json" }));
      link.download = `leaderboard.${form}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
  board.hidden = false;
}

// Curves: a list highlights a model's curve, a button removes the highlight, and the pointer shows a curve's name.
const figure = document.querySelector("figure.plot");
if (figure) {
  const [select, said, chips] = [figure.querySelector("select"), figure.querySelector("output"), document.querySelector(".chips")];
  const curves = [...figure.querySelectorAll("path.line.thin")];
  const label = (curve) => curve.querySelector("title").textContent;
  const chosen = new Map();  // from the index of a curve to the number of its colour
  const style = (colour) => "k" + colour;
  select.add(new Option("(choose)", ""));
  curves.forEach((curve, i) => select.add(new Option(label(curve), i)));
  function toFront(i) {
    if (chosen.has(i)) return;
    const colours = [...Array(6).keys()].filter((k) => ![...chosen.values()].includes(k));
    if (!colours.length) take([...chosen.keys()][0]), colours.push(...[...Array(6).keys()].filter((k) => ![...chosen.values()].includes(k)));
    const colour = colours[0];
    chosen.set(i, colour);
    curves[i].classList.add("chosen", style(colour));
    curves[i].parentNode.append(curves[i]);
    const item = document.createElement("li"), button = document.createElement("button"), key = svg("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" });
    key.append(svg("path", { class: "line " + style(colour), d: "M0 4H24" }));
    button.append(key, label(curves[i]) + " ×");
    button.title = "take it away";
    button.addEventListener("click", () => take(i));
    item.dataset.curve = i;
    item.append(button);
    chips.append(item);
  }
  function take(i) {
    curves[i].classList.remove("chosen", style(chosen.get(i)));
    chosen.delete(i);
    chips.querySelector(`[data-curve="${i}"]`).remove();
  }
  select.addEventListener("change", () => {
    if (select.value !== "") toFront(Number(select.value));
    select.value = "";
  });
  for (const curve of curves) {
    curve.addEventListener("pointerenter", () => (said.textContent = label(curve)));
    curve.addEventListener("pointerleave", () => (said.textContent = ""));
  }
  for (let i = 0; i < Math.min(data.chosen, curves.length); i++) toFront(i);
}

// Comparison of two models by class.
const table = document.getElementById("categories");
if (table) {
  const [first, second] = ["first", "second"].map((id) => document.getElementById(id));
  for (const select of [first, second]) {
    data.models.forEach((name, i) => select.add(new Option(name, i)));
    select.addEventListener("change", fill);
  }
  first.value = 1;
  second.value = 0;
  function cell(row, shown, value, style) {
    const made = row.insertCell();
    made.textContent = shown;
    made.dataset.value = value === null ? "" : value;
    if (style) made.className = style;
    return made;
  }
  function bar(difference, largest) {
    const made = svg("svg", { class: "delta", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
    const width = largest ? (50 * Math.abs(difference)) / largest : 0;
    made.append(svg("rect", { class: "rail", x: 49.6, width: 0.8, height: 6 }));
    made.append(svg("rect", { class: difference > 0 ? "up" : "down", x: difference > 0 ? 50 : 50 - width, width, height: 6 }));
    return made;
  }
  function fill() {
    const show = (v, sign) => (v === null ? "–" : (sign && v > 0 ? "+" : "") + v.toFixed(4));
    const [from, to] = [data.values[first.value], data.values[second.value]];
    const differences = data.categories.map((_, k) => (from[k] === null || to[k] === null ? null : to[k] - from[k]));
    const largest = Math.max(0, ...differences.map((d) => Math.abs(d ?? 0)));
    const rows = document.createDocumentFragment();
    data.categories.forEach((name, k) => {
      const difference = differences[k];
      const row = document.createElement("tr");
      cell(row, name, name, "text");
      if (data.objects.length) cell(row, data.objects[k].toLocaleString("en"), data.objects[k]);
      cell(row, show(from[k]), from[k]);
      cell(row, show(to[k]), to[k]);
      const last = cell(row, show(difference, true), difference, difference > 0 ? "up" : difference < 0 ? "down" : "");
      if (difference) last.append(bar(difference, largest));
      rows.append(row);
    });
    table.tBodies[0].replaceChildren(rows);
    const count = (test) => differences.filter(test).length;
    const [more, less] = [count((d) => d > 0), count((d) => d < 0)];
    document.getElementById("said").textContent = `${data.models[second.value]} has a higher ${data.metric} in ${more} of ${data.categories.length} categories, and a lower one in ${less}.`;
    sortBy(table, table.tHead.rows[0].cells.length - 1, true);
  }
  fill();
}
