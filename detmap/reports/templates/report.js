// A list beside the curves brings one of them to the front; so does a pointer on it.
for (const figure of document.querySelectorAll("figure.plot")) {
  const select = figure.querySelector("select");
  if (!select) continue;
  const said = figure.querySelector("output");
  const curves = [...figure.querySelectorAll("path.line.thin")];
  const label = (curve) => curve.querySelector("title").textContent;
  const order = curves.map((_, i) => i).sort((a, b) => (label(curves[a]) < label(curves[b]) ? -1 : 1));
  select.add(new Option("(mean alone)", ""));
  for (const i of order) select.add(new Option(label(curves[i]), i));
  function show(chosen) {
    curves.forEach((curve) => curve.classList.toggle("chosen", curve === chosen));
    said.textContent = chosen ? label(chosen) : "";
  }
  const ofList = () => (select.value === "" ? null : curves[select.value]);
  select.addEventListener("change", () => show(ofList()));
  for (const curve of curves) {
    curve.addEventListener("pointerenter", () => show(curve));
    curve.addEventListener("pointerleave", () => show(ofList()));
  }
}
