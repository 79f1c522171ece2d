"use strict";
// Everything that comes from files enters the page as textContent or dataset, never as markup.
function sortBy(table, column, descending) {
  const body = table.tBodies[0];
  const value = (row) => row.cells[column].dataset.value;
  const number = (text) => (text === "" ? NaN : Number(text));
  const text = table.tHead.rows[0].cells[column].classList.contains("text");
  const compare = (a, b) => {
    const [x, y] = text ? [value(a), value(b)] : [number(value(a)), number(value(b))];
    const missing = (v) => (text ? v === "" : Number.isNaN(v));
    if (missing(x) || missing(y)) return missing(x) - missing(y);  // what is undefined comes last either way
    const order = text ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
    return descending ? -order : order;
  };
  body.append(...[...body.rows].sort(compare));
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    if (i === column) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}
for (const table of document.querySelectorAll("#models, #categories")) {
  [...table.tHead.rows[0].cells].forEach((cell, i) => cell.querySelector("button").addEventListener("click", () => {
    const text = cell.classList.contains("text");
    const now = cell.getAttribute("aria-sort");
    sortBy(table, i, now ? now === "ascending" : !text && cell.textContent !== "rank");
  }));
}
const source = document.getElementById("data");
if (source) {
  const data = JSON.parse(source.textContent);
  const [first, second] = ["first", "second"].map((id) => document.getElementById(id));
  const table = document.getElementById("categories");
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
  }
  function fill() {
    const body = table.tBodies[0];
    body.replaceChildren();
    const show = (v, sign) => (v === null ? "–" : (sign && v > 0 ? "+" : "") + v.toFixed(4));
    data.categories.forEach((name, k) => {
      const a = data.values[first.value][k], b = data.values[second.value][k];
      const difference = a === null || b === null ? null : b - a;
      const row = body.insertRow();
      cell(row, name, name, "text");
      cell(row, show(a), a);
      cell(row, show(b), b);
      cell(row, show(difference, true), difference, difference > 0 ? "up" : difference < 0 ? "down" : "");
    });
    sortBy(table, 3, true);
  }
  fill();
}
