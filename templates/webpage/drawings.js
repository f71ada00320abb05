"use strict";
// Small drawings inside of tables: strips of intervals, bars, and the row of decisions.
{
  const { el, svg } = Page;
  const WIDE = 220;
  const LANE = 9;

  /** The place of a moment on the axis, in units of the strip. */
  const at = (moment, [from, to]) =>
    from === null || to <= from ? 0 : (WIDE * (Math.min(Math.max(moment, from), to) - from)) / (to - from);

  const piece = (lane, start, end, look) =>
    svg("rect", {
      class: look,
      x: start.toFixed(1),
      y: lane * (LANE + 3) + 1,
      width: Math.max(end - start, 2).toFixed(1),
      height: LANE,
      rx: 2,
    });

  /** A lane's build: its range, or the whole width where the whole table is built. */
  const built = (lane, build, axis, look) => {
    if (!build || build[0] === "recreate_view") return [];
    const [action, start, end] = build;
    const ranged = action === "incremental" && axis[0] !== null;
    const from = ranged && start !== null ? at(start, axis) : 0;
    const to = ranged && end !== null ? at(end, axis) : WIDE;
    return [piece(lane, from, to, look)];
  };

  /** Three lanes: prod today, the environment, prod after the merge. */
  Page.strip = (strip) => {
    const { axis } = strip;
    const view = [strip.pr, strip.prod].every((b) => !b || b[0] === "recreate_view");
    if (view) return el("span", { class: "faint" }, "view, replaced in a moment");
    const parts = [0, 1, 2].map((lane) => piece(lane, 0, WIDE, "s-track"));
    // A table that is built whole holds one result, for any interval beside it.
    const ranged = [strip.pr, strip.prod].some((b) => b && b[0] === "incremental");
    for (const [start, end] of strip.held)
      parts.push(piece(0, ranged ? at(start, axis) : 0, ranged ? at(end, axis) : WIDE, "s-held"));
    for (const [start, end] of strip.gaps)
      parts.push(piece(0, at(start, axis), at(end, axis), "s-gap"));
    for (const [start, end] of strip.lost)
      parts.push(piece(0, at(start, axis), at(end, axis), "s-lost"));
    parts.push(...built(1, strip.pr, axis, "s-pr"));
    parts.push(...built(2, strip.prod, axis, "s-saved"));
    parts.push(...built(2, strip.left, axis, "s-prod"));
    return svg(
      "svg",
      {
        class: "strip",
        viewBox: `0 0 ${WIDE} ${3 * (LANE + 3)}`,
        width: WIDE,
        height: 3 * (LANE + 3),
        role: "img",
        "aria-label": strip.says,
      },
      svg("title", {}, strip.says),
      ...parts,
    );
  };

  Page.stripLegend = () =>
    el(
      "ul",
      { class: "legend" },
      ...[
        ["s-held", "held by prod today"],
        ["s-gap", "gap in prod"],
        ["s-lost", "lost after the merge"],
        ["s-pr", "built in the environment"],
        ["s-prod", "built by prod after the merge, in any case"],
        ["s-saved", "built by prod only if nothing is applied before"],
      ].map(([look, label]) =>
        el(
          "li",
          {},
          svg(
            "svg",
            { width: 18, height: 10, "aria-hidden": "true" },
            svg("rect", { class: look, width: 18, height: 10, rx: 2 }),
          ),
          " " + label,
        ),
      ),
    );

  /** Bars below each other, each a share of the width; one that is not known is hatched. */
  Page.bars = (bars) => {
    if (!bars.length) return "";
    const made = el("div", { class: "bars" });
    for (const [label, share, text, tone] of bars) {
      const known = typeof share === "number";
      const width = known ? Math.min(Math.max(share, 0), 1) * 100 : 100;
      const missing = tone === "match" && known && share < 1;
      made.append(
        el("span", { class: "bar-label" }, label ? el("code", {}, label) : ""),
        svg(
          "svg",
          { class: "bar", width: 100, height: 10, "aria-hidden": "true" },
          svg("rect", { class: missing ? "b-differs" : "b-track", width: 100, height: 10, rx: 2 }),
          svg("rect", {
            class: known ? `b-${tone}` : "b-unknown",
            width: known && share > 0 ? Math.max(width, 1.5) : width,
            height: 10,
            rx: 2,
          }),
        ),
        el("span", { class: "bar-text" }, text),
      );
    }
    return made;
  };

  /** The decisions of a pull request, the oldest first. */
  Page.timeline = (part) =>
    el(
      "ol",
      { class: "timeline" },
      ...part.steps.map(([key, label, at, plan, head, commit, run], number) =>
        el(
          "li",
          { class: number === part.steps.length - 1 ? "now" : null },
          Page.chip([key, label]),
          el("span", { class: "faint" }, at),
          head ? Page.link(el("code", {}, head), commit) : null,
          plan ? el("span", { class: "faint" }, "plan ", el("code", {}, plan)) : null,
          run ? Page.link("run", run) : null,
        ),
      ),
    );
}
