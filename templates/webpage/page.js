"use strict";
// Reads the data, draws the sections in their order, and wires search and the addresses inside.
{
  const { el, prose } = Page;
  const sections = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("sections");
  const nav = document.getElementById("nav");
  Page.words = [];
  Page.rules = new Map();
  for (const section of sections)
    for (const part of section.parts)
      if (part.type === "rules") for (const page of part.pages) Page.rules.set(page[0], page);

  /** A rule's page, as far as Markdown of ours goes: headings, code, tables as they are. */
  const page = (text) => {
    const made = document.createDocumentFragment();
    text.split(/^```\w*\n([^]*?)^```$/m).forEach((block, number) => {
      if (number % 2) {
        made.append(el("pre", { tabindex: "0" }, el("code", {}, block)));
        return;
      }
      for (const paragraph of block.split(/\n{2,}/)) {
        const plain = paragraph.trim();
        const heading = /^(#+) (.*)$/.exec(plain);
        if (!plain || (heading && heading[1].length === 1)) continue;
        if (heading) made.append(el("h3", {}, prose(heading[2])));
        else made.append(el("p", {}, prose(plain.replace(/\*\*/g, ""))));
      }
    });
    return made;
  };

  const rules = (part) =>
    el(
      "div",
      {},
      ...part.pages.map(([id, title, text, url]) => {
        const made = el(
          "details",
          { class: "rulepage", id: Page.anchor("rule", id) },
          el("summary", {}, el("span", { class: "rule" }, id), el("span", {}, title)),
        );
        made.addEventListener("toggle", () => {
          if (made.open && made.childElementCount === 1) made.append(page(text), url ? el("p", {}, Page.link("this page on GitHub", url)) : "");
        });
        return made;
      }),
    );

  const stages = (part) =>
    el(
      "details",
      { class: "stages" },
      el("summary", {}, `${part.title} (${Page.count(part.stages.length, "stage")})`),
      ...part.stages.map(([title, items]) =>
        el(
          "div",
          {},
          el("h3", {}, title),
          items.length ? el("ul", {}, ...items.map((item) => el("li", {}, el("code", {}, item)))) : null,
        ),
      ),
    );

  const drawers = {
    table: Page.table,
    lineage: Page.lineage,
    diffs: Page.diffs,
    timeline: Page.timeline,
    rules,
    stages,
    prose: (part) =>
      el(
        "div",
        { class: "prose" },
        part.title ? el("h3", {}, prose(part.title)) : null,
        ...part.texts.map((text) => el("p", {}, prose(text))),
      ),
    code: (part) =>
      el(
        "div",
        {},
        part.title ? el("h3", {}, prose(part.title)) : null,
        el("pre", { tabindex: "0" }, el("code", {}, part.text)),
      ),
  };

  const search = el("input", {
    type: "search",
    id: "search",
    placeholder: "Search models, rules, SQL …",
    "aria-label": "Search in all tables, diffs and the lineage",
    autocomplete: "off",
    spellcheck: "false",
  });
  const links = el("ul");
  nav.append(links, search);
  for (const section of sections) {
    const count = section.count === null ? "" : Page.number(section.count);
    links.append(
      el("li", {}, el("a", { href: `#${section.id}` }, section.short, el("span", { class: "n" }, count))),
    );
    const made = el("section", { id: section.id }, el("h2", {}, section.title));
    main.append(made);
    for (const part of section.parts) made.append(drawers[part.type](part));
  }

  let timer = 0;
  const run = () => {
    Page.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    Page.search(search.value);
  };
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(run, 80);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      run();
    } else if (event.key === "Enter") Page.showFound?.();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
    }
  });

  /** Opens what an address inside of the page leads to. */
  const follow = () => {
    const id = decodeURI(location.hash.slice(1));
    const raw = location.hash.slice(1);
    const target =
      document.getElementById(raw) ?? document.getElementById(id) ?? Page.openDiff?.(raw) ?? null;
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", follow);
  if (location.hash) follow();
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details.diff")) details.open = true;
  });
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
}
