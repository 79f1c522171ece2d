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
