"use strict";
// Everything that comes from files enters the page as textContent or dataset, never as markup.
function sortBy(table, column, descending) {
  const body = table.tBodies[0];
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const number = (text) => (text === "" ? NaN : Number(text));
  const text = table.tHead.rows[0].cells[column].classList.contains("text");
  const compare = (a, b) => {
    const [x, y] = text ? [value(a), value(b)] : [number(value(a)), number(value(b))];
    const missing = (v) => (text ? v === "" : Number.isNaN(v));
    if (missing(x) || missing(y)) return missing(x) - missing(y);  // undefined values come last in both directions
    const order = text ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
    return descending ? -order : order;
  };
  body.append(...[...body.rows].sort(compare));
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    if (i === column) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((cell, i) => cell.querySelector("button").addEventListener("click", () => {
    const text = cell.classList.contains("text");
    const now = cell.getAttribute("aria-sort");
    sortBy(table, i, now ? now === "ascending" : !text && cell.textContent !== "rank");
  }));
}
// A search hides rows, and a button restores the original order of the rows.
for (const tools of document.querySelectorAll(".tools:has(input[type=search])")) {
  const table = tools.parentNode.querySelector("table");
  const [search, said, rows] = [tools.querySelector("input"), tools.querySelector("output"), [...table.tBodies[0].rows]];
  search.addEventListener("input", () => {
    const sought = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) count += !(row.hidden = !row.textContent.toLowerCase().includes(sought));
    said.textContent = sought ? `${count} of ${rows.length}` : "";
  });
  tools.querySelector(".worst")?.addEventListener("click", () => {
    table.tBodies[0].append(...rows);
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  });
  tools.hidden = false;
}
