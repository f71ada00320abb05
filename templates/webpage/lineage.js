"use strict";
// The lineage: places are computed before; here it is drawn, moved and zoomed. Far away a model is
// a coloured box, near it is a name; only what is in sight is drawn with text.
{
  const { el, svg } = Page;
  const [BOX, HIGH, GAP] = [240, 36, 40];
  const READABLE = 0.42;
  const LONGEST = 31;

  const shorter = (text) => (text.length > LONGEST ? "…" + text.slice(1 - LONGEST) : text);
  const box = ([, , x, y]) => `M${x - BOX / 2} ${y - HIGH / 2}h${BOX}v${HIGH}h${-BOX}z`;
  const curve = (from, to) => {
    const [x1, y1, x2, y2] = [from[2] + BOX / 2, from[3], to[2] - BOX / 2, to[3]];
    const bend = Math.max(24, Math.abs(x2 - x1) / 2);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  };

  Page.lineage = (part) => {
    const { nodes, edges } = part;
    const [xs, ys] = [nodes.map((n) => n[2]), nodes.map((n) => n[3])];
    const low = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
    const high = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
    const left = low(xs) - BOX / 2 - GAP;
    const top = low(ys) - HIGH / 2 - GAP / 2;
    const wide = high(xs) + BOX / 2 + GAP - left;
    const tall = high(ys) + HIGH / 2 + GAP / 2 - top;
    const reads = nodes.map(() => []);
    const readers = nodes.map(() => []);
    for (const [parent, reader] of edges) {
      reads[reader].push(parent);
      readers[parent].push(reader);
    }

    const lines = svg("path", { class: "edges" });
    const chosenLines = svg("path", { class: "edges chosen" });
    const boxes = svg("g", { class: "boxes" });
    const names = svg("g", { class: "nodes" });
    const world = svg("g", {}, lines, chosenLines, boxes, names);
    const canvas = svg(
      "svg",
      {
        class: "lineage",
        tabindex: "0",
        role: "application",
        "aria-label": `Lineage of ${nodes.length} models. Arrow keys move it, plus and minus zoom, 0 shows all.`,
      },
      world,
    );
    const far = new Map();
    nodes.forEach((node) => far.set(node[1], (far.get(node[1]) ?? "") + box(node)));
    for (const [change, d] of far) boxes.append(svg("path", { class: `n-${change}`, d }));
    const matching = svg("path", { class: "matching" });
    boxes.append(matching);
    const all = edges.map(([a, b]) => curve(nodes[a], nodes[b]));
    const whole = all.join("");

    const drawn = new Map();
    let [found, at, chosen] = [[], -1, -1];
    let view = { scale: 1, x: 0, y: 0 };

    const size = () => [canvas.clientWidth || 1000, canvas.clientHeight || 480];
    const inSight = ([, , x, y]) => {
      const [width, height] = size();
      const [sx, sy] = [(x + view.x) * view.scale, (y + view.y) * view.scale];
      const [dx, dy] = [BOX * view.scale, HIGH * view.scale];
      return sx > -dx && sy > -dy && sx < width + dx && sy < height + dy;
    };

    const draw = (index) => {
      const [name, change, x, y, note, forward] = nodes[index];
      const made = svg(
        "g",
        {
          class: `node n-${change}${forward ? " forward" : ""}`,
          transform: `translate(${x - BOX / 2},${y - HIGH / 2})`,
          tabindex: "0",
          role: "button",
        },
        svg("title", {}, note ? `${name}\n${note}` : name),
        svg("rect", { width: BOX, height: HIGH, rx: 6 }),
        svg("text", { x: 10, y: note ? 15 : 23 }, shorter(name)),
      );
      if (note) made.append(svg("text", { x: 10, y: 29, class: "what" }, shorter(note)));
      made.addEventListener("click", () => choose(index));
      made.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(index);
      });
      return made;
    };

    const refresh = Page.framed(() => {
      const near = view.scale >= READABLE;
      canvas.classList.toggle("near", near);
      const sight = new Set();
      if (near) nodes.forEach((node, index) => inSight(node) && sight.add(index));
      for (const [index, made] of drawn)
        if (!sight.has(index)) {
          made.remove();
          drawn.delete(index);
        }
      for (const index of sight)
        if (!drawn.has(index)) {
          const made = draw(index);
          drawn.set(index, made);
          names.append(made);
        }
      for (const [index, made] of drawn) {
        made.classList.toggle("found", found.length > 0 && found.includes(index));
        made.classList.toggle("chosen", index === chosen);
      }
      const d = near
        ? edges.flatMap(([a, b], n) => (sight.has(a) || sight.has(b) ? [all[n]] : [])).join("")
        : whole;
      if (lines.getAttribute("d") !== d) lines.setAttribute("d", d);
    });

    const smallest = () => {
      const [width, height] = size();
      return Math.min(width / wide, height / tall, 1);
    };
    // It works on the page itself, so it begins with the first size.
    let mover = null;
    const begin = () =>
      (mover = Panzoom(world, {
      canvas: true,
      cursor: "grab",
      maxScale: 3,
      minScale: 0.01,
      step: 0.25,
      noBind: true,
      handleStartEvent: (event) => {
        if (event.target.closest?.(".node")) return;
        event.preventDefault();
      },
      setTransform: (_, now) => {
        view = now;
        world.setAttribute("transform", `scale(${now.scale}) translate(${now.x},${now.y})`);
        refresh();
      },
    }));

    const look = (scale, x, y) => {
      // The point (x, y) of the picture comes to the middle.
      const [width, height] = size();
      mover.zoom(scale, { force: true });
      mover.pan(width / 2 / scale - x, height / 2 / scale - y, { force: true });
    };
    const fit = () => look(smallest(), left + wide / 2, top + tall / 2);
    // What is asked for; what is drawn follows with the browser's next picture.
    const zoom = (factor) => {
      const [width, height] = size();
      const [scale, pan] = [mover.getScale(), mover.getPan()];
      const [x, y] = [width / 2 / scale - pan.x, height / 2 / scale - pan.y];
      look(Math.min(3, Math.max(smallest() * 0.8, scale * factor)), x, y);
    };
    const show = (index) => look(Math.max(mover.getScale(), 0.9), nodes[index][2], nodes[index][3]);
    const move = (x, y) => mover.pan(x / mover.getScale(), y / mover.getScale(), { relative: true });

    const panel = el("div", { class: "panel", "aria-live": "polite", hidden: true });
    const list = (label, indexes) =>
      el(
        "p",
        {},
        el("b", {}, `${label} (${indexes.length}): `),
        ...indexes.slice(0, 30).flatMap((index, number) => [
          number ? ", " : "",
          el("button", { type: "button", class: "more", onclick: () => (choose(index), show(index)) }, nodes[index][0]),
        ]),
        indexes.length > 30 ? ` and ${indexes.length - 30} more` : indexes.length ? "" : "none here",
      );

    /** All that is reached from `start` in one direction, as numbers of edges. */
    const reach = (start, next) => {
      const [seen, waiting] = [new Set([start]), [start]];
      while (waiting.length)
        for (const other of next[waiting.pop()])
          if (!seen.has(other)) {
            seen.add(other);
            waiting.push(other);
          }
      return seen;
    };

    const choose = (index) => {
      chosen = index;
      const [name, change, , , note, forward, url] = nodes[index];
      const [above, below] = [reach(index, reads), reach(index, readers)];
      chosenLines.setAttribute(
        "d",
        all
          .filter((_, n) => {
            const [a, b] = edges[n];
            return (above.has(a) && above.has(b)) || (below.has(a) && below.has(b));
          })
          .join(""),
      );
      const label = part.legend.find(([key]) => key === change)?.[1] ?? change;
      const diff = Page.openDiff ? Page.anchor("diff", name) : null;
      panel.replaceChildren(
        el(
          "p",
          {},
          el("code", { class: "name" }, name),
          " ",
          Page.chip([change, label]),
          forward ? el("span", { class: "faint" }, " forward-only") : "",
          note ? el("span", {}, ` ${note}`) : "",
        ),
        list("Reads", reads[index]),
        list("Read by", readers[index]),
        el("p", {}, `${below.size - 1} below it in all, ${above.size - 1} above. `, Page.link("File", url)),
        diff && document.getElementById(diff) ? el("p", {}, el("a", { href: `#${diff}` }, "Diff")) : "",
      );
      panel.hidden = false;
      refresh();
    };

    Page.searching.push((words) => {
      found = words.length
        ? nodes.flatMap((node, index) =>
            Page.matches(`${node[0]} ${node[1]} ${node[4]}`.toLowerCase(), words) ? [index] : [],
          )
        : [];
      at = -1;
      matching.setAttribute("d", found.map((index) => box(nodes[index])).join(""));
      hits.textContent = words.length ? `${Page.number(found.length)} of ${Page.count(nodes.length, "model")} match` : "";
      next.hidden = found.length === 0;
      refresh();
    });
    Page.showFound = () => {
      if (!found.length) return;
      at = (at + 1) % found.length;
      choose(found[at]);
      show(found[at]);
    };

    const button = (label, title, action) =>
      el("button", { type: "button", title, "aria-label": title, onclick: action }, label);
    // A browser fills the screen only for a person; another click would be an error in its log.
    const fillScreen = (part) => {
      if (navigator.userActivation?.isActive !== false) part.requestFullscreen().catch(() => {});
    };
    const next = button("Next match", "Show the next match", () => Page.showFound());
    next.hidden = true;
    const hits = el("span", { class: "faint", role: "status" });
    const tools = el(
      "div",
      { class: "tools" },
      button("+", "Zoom in", () => zoom(1.5)),
      button("−", "Zoom out", () => zoom(1 / 1.5)),
      button("All", "Show all", fit),
      document.fullscreenEnabled ? button("Full screen", "Full screen; Escape ends it", () => fillScreen(made)) : null,
      next,
      hits,
      el("span", { class: "faint hint" }, "drag to move · Ctrl and wheel to zoom · click a model for its readers"),
    );
    const keys = {
      "+": () => zoom(1.5),
      "=": () => zoom(1.5),
      "-": () => zoom(1 / 1.5),
      0: fit,
      ArrowLeft: () => move(60, 0),
      ArrowRight: () => move(-60, 0),
      ArrowUp: () => move(0, 60),
      ArrowDown: () => move(0, -60),
    };
    canvas.addEventListener("keydown", (event) => {
      const action = event.ctrlKey || event.metaKey ? null : keys[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey) mover.zoomWithWheel(event);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => mover.handleDown(event));
    addEventListener("pointermove", (event) => mover?.handleMove(event));
    for (const end of ["pointerup", "pointercancel"])
      addEventListener(end, (event) => mover?.handleUp(event));

    const legend = el(
      "ul",
      { class: "legend" },
      ...part.legend.map(([key, label, count]) =>
        el("li", {}, el("span", { class: `swatch n-${key}` }), ` ${label} (${Page.number(count)})`),
      ),
      part.forward ? el("li", {}, el("span", { class: "swatch forward" }), " forward-only") : null,
    );
    const made = el("div", { class: "lineagepart" }, tools, canvas, legend, panel);
    made.addEventListener("fullscreenchange", () => setTimeout(fit));
    let before = 0;
    new ResizeObserver(() => {
      const width = canvas.clientWidth;
      if (width === before) return;
      before = width;
      // A drawing that is fitted into the width is flat; zoomed in, it needs the window's height.
      canvas.style.height = `${Math.round(Math.max(160, Math.min(innerHeight * 0.8, tall)))}px`;
      if (mover !== null) {
        fit();
        return;
      }
      begin();
      // It goes to its own start once this is done.
      setTimeout(() => {
        fit();
        canvas.dataset.ready = "";
      });
    }).observe(canvas);
    return made;
  };
}
