// What the server did for a query, as a tree: each operator with its time, rows and steps.
import type { ExplainNode, Stats } from "./api";
import { fill, h } from "./dom";
import { count, seconds, short } from "./format";
import { formatTime } from "./time";

interface Row {
  node: ExplainNode;
  depth: number;
  total: number; // seconds, children included
  own: number;
  children: Row[];
}

// A node without an operator of its own takes the time of what is below it.
function measure(node: ExplainNode, depth: number): Row {
  const children = (node.children ?? []).map((child) => measure(child, depth + 1));
  const below = children.reduce((sum, child) => sum + child.total, 0);
  const total = node.seconds ?? below;
  return { node, depth, total, own: node.seconds === undefined ? 0 : Math.max(0, total - below), children };
}

function moment(t: number | string | undefined): string {
  const ms = typeof t === "string" ? Date.parse(t) || Number(t) * 1000 : (t ?? 0) > 1e11 ? (t ?? 0) : (t ?? 0) * 1000;
  return formatTime(ms);
}

function bar(row: Row, whole: number): HTMLElement {
  const percent = (v: number): string => `${whole > 0 ? Math.min(100, (100 * v) / whole) : 0}%`;
  return h("span", { class: "time-bar", title: `${seconds(row.own)} in this operator, ${seconds(row.total)} with those below` }, h("i", { class: "time-total", style: { width: percent(row.total) } }), h("i", { class: "time-own", style: { width: percent(row.own) } }));
}

function facts(node: ExplainNode): string {
  const parts: string[] = [];
  if (node.series !== undefined) parts.push(`${count(node.series)} series selected`);
  if (node.from !== undefined && node.to !== undefined) parts.push(`${moment(node.from)} – ${moment(node.to)}`);
  return parts.join(", ");
}

function treeItem(row: Row, whole: number, move: (from: HTMLElement, by: number) => void): HTMLElement {
  const { node } = row;
  const group = row.children.length > 0 ? h("ul", { role: "group" }, row.children.map((child) => treeItem(child, whole, move))) : null;
  const note = facts(node);
  const line = h(
    "div",
    { class: "explain-row" },
    h("span", { class: "explain-what", style: { "--depth": String(row.depth) } }, h("span", { class: `kind kind-${node.node}` }, node.node), h("code", { title: node.text }, node.text), note && h("span", { class: "quiet explain-note" }, note)),
    bar(row, whole),
    h("span", { class: "number" }, node.seconds === undefined ? "" : seconds(node.seconds)),
    h("span", { class: "number" }, node.rows === undefined ? "" : short(node.rows)),
    h("span", { class: "number" }, short(node.steps)),
  );
  const item = h("li", { role: "treeitem", tabindex: row.depth === 0 ? 0 : -1, "aria-expanded": group ? "true" : undefined, "aria-label": `${node.node} ${node.text}` }, line, group);
  const open = (on: boolean): void => {
    if (!group) return;
    group.hidden = !on;
    item.setAttribute("aria-expanded", String(on));
  };
  line.addEventListener("click", () => open(group?.hidden ?? true));
  item.addEventListener("keydown", (event) => {
    const keys: Record<string, () => void> = { ArrowDown: () => move(item, 1), ArrowUp: () => move(item, -1), ArrowRight: () => (group?.hidden ? open(true) : move(item, 1)), ArrowLeft: () => open(false), Enter: () => open(group?.hidden ?? true) };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  return item;
}

export function explainTree(root: ExplainNode, stats: Stats | undefined): HTMLElement {
  const row = measure(root, 0);
  const tree = h("ul", { role: "tree", class: "explain", "aria-label": "What the server did" });
  const move = (from: HTMLElement, by: number): void => {
    const items = [...tree.querySelectorAll<HTMLElement>("[role=treeitem]")].filter((item) => item.offsetParent !== null);
    const next = items[items.indexOf(from) + by];
    if (!next) return;
    from.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  fill(tree, treeItem(row, row.total, move));
  const whole = stats?.timings?.execTotalTime;
  const read = stats?.samples?.totalQueryableSamples, peak = stats?.samples?.peakSamples;
  const figure = (label: string, text: string): HTMLElement => h("div", {}, h("span", { class: "quiet" }, label), h("b", {}, text));
  return h(
    "div",
    { class: "explain-view" },
    h("div", { class: "figures" }, whole !== undefined && figure("whole query", seconds(whole)), figure("operators", seconds(row.total)), read !== undefined && figure("samples read", count(read)), peak !== undefined && figure("held at most", count(peak))),
    h("div", { class: "explain-row explain-head", "aria-hidden": "true" }, h("span", {}, "operator"), h("span", {}, "time: own, with below"), h("span", { class: "number" }, "time"), h("span", { class: "number" }, "rows"), h("span", { class: "number" }, "steps")),
    tree,
  );
}
