// The navigation marks the section in view.
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((one) => one.isIntersecting)) {
    for (const link of links.values()) link.removeAttribute("aria-current");
    const link = links.get(entry.target.id), bar = link.closest("nav");
    link.setAttribute("aria-current", "true");
    if (bar.scrollWidth > bar.clientWidth) bar.scrollLeft = link.offsetLeft - 40;
  }
}, { rootMargin: "-10% 0px -80% 0px" });
for (const id of links.keys()) seen.observe(document.getElementById(id));

// Curves: one list selects the variant that is drawn; the other list, or the pointer, highlights a curve.
for (const figure of document.querySelectorAll("figure.plot")) {
  const [variant, select] = [figure.querySelector("select.variant"), figure.querySelector("select.one")];
  const curves = [...figure.querySelectorAll("path.line.thin")];
  const label = (curve) => curve.querySelector("title").textContent;
  let named = () => {};
  if (select) {
    const said = figure.querySelector("output");
    const order = curves.map((_, i) => i).sort((a, b) => (label(curves[a]) < label(curves[b]) ? -1 : 1));
    select.add(new Option("(mean alone)", ""));
    for (const i of order) select.add(new Option(label(curves[i]), i));
    const show = (chosen) => {
      curves.forEach((curve) => curve.classList.toggle("chosen", curve === chosen));
      said.textContent = chosen ? label(chosen) : "";
    };
    const ofList = () => (select.value === "" ? null : curves[select.value]);
    named = () => {
      for (const option of select.options) if (option.value !== "") option.textContent = label(curves[option.value]);
      show(ofList());
    };
    select.addEventListener("change", () => show(ofList()));
    for (const curve of curves) {
      curve.addEventListener("pointerenter", () => show(curve));
      curve.addEventListener("pointerleave", () => show(ofList()));
    }
  }
  variant?.addEventListener("change", () => {
    const at = variant.selectedIndex;
    for (const line of figure.querySelectorAll("path[data-levels]")) {
      const count = line.dataset.levels.length / variant.options.length;
      const heights = [...line.dataset.levels.slice(at * count, (at + 1) * count)].map((one) => one.charCodeAt(0) - 256);
      line.setAttribute("d", heights.map((y, i) => `${i ? "L" : "M"}${(44 + (306 * i) / (count - 1)).toFixed(1)} ${252 - y}`).join(""));
      line.querySelector("title").textContent = line.dataset.labels.split("\t")[at];
    }
    const main = figure.querySelector("path.main title");
    figure.querySelector(".note").textContent = `At ${variant.parentNode.firstChild.textContent.trim()} ${variant.value}: ${main.textContent}.`;
    named();
  });
}

// Pictures: filters hide pictures and dim marks that do not match; a button shows more of the matching pictures.
for (const form of document.querySelectorAll("form.filters")) {
  const field = (name) => form.elements.namedItem(name);
  const figures = [...form.parentNode.querySelectorAll(".gallery.filtered figure")];
  const drawn = new Map(figures.map((figure) => [figure, [...figure.querySelectorAll("path.box")]]));
  const lists = [...form.parentNode.querySelectorAll(".gallery.filtered")];
  const STEP = lists.length > 1 ? 12 : 24;
  const more = lists.map((list) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "more";
    button.addEventListener("click", () => {
      list.dataset.most = Number(list.dataset.most) + STEP;
      apply();
    });
    list.after(button);
    return button;
  });
  function apply() {
    const [error, kind, as, size] = ["error", "class", "as", "size"].map((name) => field(name)?.value ?? "");
    const least = field("score").value === "" ? -Infinity : Number(field("score").value);
    const any = error || kind || as || size || least > -Infinity;
    const meets = ({ e, o, f, s, z }) =>
      (!error || e === error) && (!size || z === size) && (s === undefined ? least === -Infinity : Number(s) >= least) &&
      (kind && as ? o === kind || f === as : kind ? o === kind || f === kind : !as || (f === as && o !== f));
    let count = 0;
    lists.forEach((list, i) => {
      let shown = 0;
      for (const figure of list.children) {
        const marks = drawn.get(figure), met = marks.filter((mark) => meets(mark.dataset));
        const wanted = (!any || met.length > 0) && (!(kind && as) || (figure.dataset.cells ?? "").split(" ").includes(`${kind}-${as}`));
        shown += wanted;
        figure.hidden = !wanted || shown > Number(list.dataset.most);
        const front = new Set(met);
        for (const mark of marks) mark.classList.toggle("dim", any && !front.has(mark));
      }
      more[i].hidden = shown <= Number(list.dataset.most);
      more[i].textContent = `show ${Math.min(STEP, shown - Number(list.dataset.most))} more of ${shown}`;
      count += shown;
    });
    form.querySelector("output").textContent = any ? `${count} of ${figures.length} pictures` + (count ? "" : ": none of them is an example") : `${figures.length} pictures`;
  }
  function start() {
    for (const list of lists) list.dataset.most = STEP;
    apply();
  }
  form.hidden = !figures.length;
  form.addEventListener("input", start);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(start));
  start();
  for (const link of document.querySelectorAll("a[data-show]")) {
    link.addEventListener("click", () => {
      form.reset();
      const [name, value] = link.dataset.show.split("=");
      if (name === "cell") [field("class").value, field("as").value] = value.split("-");
      else field(name).value = value;
      start();
    });
  }
}

// A button or a click on a picture enlarges the picture and lists its marks.
for (const figure of document.querySelectorAll(".gallery figure")) {
  const button = document.createElement("button");
  const turn = () => {
    const large = figure.classList.toggle("large");
    button.textContent = large ? "smaller" : "larger";
    figure.querySelector(".marks")?.remove();
    if (!large) return;
    const list = document.createElement("ul");
    list.className = "marks";
    for (const mark of figure.querySelectorAll("path.box title")) list.append(Object.assign(document.createElement("li"), { textContent: mark.textContent }));
    figure.append(list);
  };
  button.type = "button";
  button.textContent = "larger";
  button.addEventListener("click", turn);
  figure.querySelector(".picture").addEventListener("click", turn);
  figure.querySelector("figcaption").append(" ", button);
}
