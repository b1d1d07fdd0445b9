// What lies on the disk: parts drawn along time like layers in a core, the head above them, and the figures.
import { get, type Part, type Partition, type StorageStatus } from "./api";
import { fill, h, svg } from "./dom";
import { bytes, count, plural, short } from "./format";
import { formatDay, formatTime, roughly } from "./time";
import { card, excuse, figure, repeat, type Mounted } from "./view";

const WIDTH = 1000; // of the drawing, in its own units
const TOP = 24, HEAD = 14, GAP = 2, LANES_HEIGHT = 240;
const LEVEL_COLORS = 6;

interface Placed {
  part: Part;
  partition: Partition;
  lane: number;
}

// Parts in lanes so that none covers another: the greatest lie deepest, as the oldest layers do.
function place(partitions: Partition[]): { placed: Placed[]; lanes: number } {
  const all = partitions.flatMap((partition) => partition.parts.map((part) => ({ part, partition })));
  all.sort((a, b) => b.part.bytes - a.part.bytes || a.part.minTime - b.part.minTime);
  const lanes: { from: number; to: number }[][] = [];
  const placed = all.map(({ part, partition }): Placed => {
    const from = part.minTime, to = Math.max(part.maxTime, part.minTime + 1);
    let lane = lanes.findIndex((taken) => taken.every((each) => to <= each.from || from >= each.to));
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane]!.push({ from, to });
    return { part, partition, lane };
  });
  return { placed, lanes: Math.max(1, lanes.length) };
}

// A lane is as thick as its greatest part is large, in the drawing's measure.
function thicknesses(placed: Placed[], lanes: number): number[] {
  const largest = new Array<number>(lanes).fill(0);
  for (const { part, lane } of placed) largest[lane] = Math.max(largest[lane]!, Math.sqrt(part.bytes));
  const sum = largest.reduce((total, each) => total + each, 0) || 1;
  const room = Math.min(LANES_HEIGHT, lanes * 46);
  return largest.map((each) => Math.max(5, (room * each) / sum - GAP));
}

// Hairlines that make layers of the rectangles.
function varves(): SVGElement {
  const lines = [3.5, 6.5, 11.5, 13.5, 18.5].map((y) => svg("line", { x1: 0, x2: 20, y1: y, y2: y, class: "varve-line" }));
  return svg("defs", {}, svg("pattern", { id: "varves", width: 20, height: 21, patternUnits: "userSpaceOnUse" }, lines));
}

function ticks(from: number, to: number, most: number): { at: number; text: string }[] {
  const day = 86400e3;
  const size = [day / 24, day / 8, day / 4, day, 2 * day, 7 * day, 14 * day, 30.44 * day, 91.3 * day, 365.25 * day].find((each) => (to - from) / each <= most) ?? 365.25 * day * 5;
  const out: { at: number; text: string }[] = [];
  for (let at = Math.ceil(from / size) * size; at <= to; at += size) out.push({ at, text: size < day ? formatTime(at).slice(5, 16) : formatDay(at) });
  return out;
}

export class StorageView implements Mounted {
  readonly dom: HTMLElement;
  private readonly figures = h("div", { class: "figures-row" });
  private readonly core = h("div", { class: "core" });
  private readonly detail = h("div", { class: "core-detail", "aria-live": "polite" });
  private readonly tables = h("div");
  private readonly failed = h("div");
  private drawn = "";
  private readonly stop: () => void;

  constructor() {
    this.dom = h("div", { class: "storage" }, h("h1", { class: "unseen" }, "Storage"), this.failed, this.figures, card("Layers", this.core, this.detail), this.tables);
    this.stop = repeat(5000, () => this.load());
  }

  private async load(): Promise<void> {
    try {
      const { data } = await get<StorageStatus>("api/v1/status/storage");
      const text = JSON.stringify(data);
      if (text === this.drawn) return; // nothing changed: what is focused stays
      this.drawn = text;
      fill(this.failed);
      this.show(data);
    } catch (error) {
      this.drawn = "";
      fill(this.figures);
      fill(this.core, excuse(error, "view of the storage"));
      fill(this.detail);
      fill(this.tables);
    }
  }

  private show(status: StorageStatus): void {
    const parts = status.partitions.flatMap((partition) => partition.parts);
    const samples = parts.reduce((sum, part) => sum + part.samples, 0);
    const size = parts.reduce((sum, part) => sum + part.bytes, 0);
    const disk = status.disk.usedBytes + status.disk.freeBytes;
    fill(
      this.figures,
      figure("on disk", bytes(status.disk.usedBytes), `${bytes(status.disk.freeBytes)} free`),
      figure("samples in parts", short(samples), samples > 0 ? `${(size / samples).toFixed(2)} bytes each` : undefined),
      figure("parts", count(parts.length), plural(status.partitions.length, "partition")),
      figure("head", `${short(status.head.samples)} samples`, `${count(status.head.series)} series, ${bytes(status.head.bytes)}`),
      figure("log", bytes(status.wal.bytes), plural(status.wal.segments, "segment")),
      figure("merges", status.merges.running > 0 ? `${status.merges.running} running` : "none running", `${status.merges.waiting} waiting, ${count(status.merges.total)} so far`),
      figure("retention", status.retentionMs > 0 ? roughly(status.retentionMs) : "for ever", status.path),
    );
    if (disk > 0) this.figures.firstElementChild?.append(h("span", { class: "meter", title: "how full the disk is" }, h("i", { style: { width: `${Math.min(100, (100 * status.disk.usedBytes) / disk)}%` } })));
    this.draw(status);
    this.listParts(status);
  }

  private draw(status: StorageStatus): void {
    const { placed, lanes } = place(status.partitions);
    const head = status.head.samples > 0 ? [status.head] : [];
    const spans = [...placed.map((each) => each.part), ...head];
    if (spans.length === 0) {
      fill(this.core, h("div", { class: "nothing" }, h("b", {}, "No layers yet"), h("p", { class: "quiet" }, "The first samples go to the head; it settles into a part after a while.")));
      return;
    }
    const from = Math.min(...spans.map((each) => each.minTime)), to = Math.max(...spans.map((each) => each.maxTime), from + 1);
    const x = (t: number): number => ((t - from) / (to - from)) * WIDTH;
    const thick = thicknesses(placed, lanes);
    const bottom = TOP + HEAD + 6 + thick.reduce((sum, each) => sum + each + GAP, 0);
    const y = (lane: number): number => bottom - thick.slice(0, lane + 1).reduce((sum, each) => sum + each + GAP, 0);
    const axis = ticks(from, to, Math.max(2, Math.min(8, this.core.clientWidth / 120))).map(({ at, text }) => svg("g", {}, svg("line", { x1: x(at), x2: x(at), y1: TOP - 4, y2: bottom, class: "core-tick" }), svg("text", { x: x(at) + 4, y: 12, class: "core-label" }, text)));
    const borders = status.partitions.map((partition) => svg("line", { x1: x(partition.minTime), x2: x(partition.minTime), y1: TOP - 6, y2: bottom, class: "core-border" }));
    const layers = placed.map((each) => this.layer(each, x, y(each.lane), thick[each.lane]!));
    const water = head.map((each) => {
      const width = Math.max(7, x(each.maxTime) - x(each.minTime));
      const rect = svg("rect", { x: Math.min(x(each.minTime), WIDTH - width), y: TOP, width, height: HEAD, rx: 2, class: "core-head", tabindex: 0, role: "img", "aria-label": `head: ${short(each.samples)} samples` });
      this.interactive(rect, () => this.tell("head", [`${count(each.samples)} samples`, `${count(each.series)} series`, bytes(each.bytes), `${formatTime(each.minTime)} – ${formatTime(each.maxTime)}`]));
      return rect;
    });
    fill(this.core, svg("svg", { class: "core-drawing", viewBox: `0 0 ${WIDTH} ${bottom + 4}`, preserveAspectRatio: "none", style: { height: `${bottom + 4}px` }, role: "group", "aria-label": "Parts along time" }, varves(), axis, borders, layers, water));
    this.unstretch(axis);
    fill(this.detail, h("span", { class: "quiet" }, `${formatTime(from)} – ${formatTime(to)}: point at a layer to see what it is. The band on top is the head, in memory.`));
  }

  // The drawing is as wide as the page; its letters are not stretched with it.
  private unstretch(axis: SVGElement[]): void {
    const scale = WIDTH / Math.max(1, this.core.clientWidth);
    for (const tick of axis) {
      const text = tick.querySelector("text")!;
      const at = Number(text.getAttribute("x"));
      text.setAttribute("transform", `translate(${at} 0) scale(${scale} 1) translate(${-at} 0)`);
    }
  }

  private layer({ part, partition }: Placed, x: (t: number) => number, y: number, thick: number): SVGElement {
    const width = Math.max(5, x(part.maxTime) - x(part.minTime));
    const box = { x: Math.min(x(part.minTime), WIDTH - width), y, width, height: thick };
    const rect = svg("rect", { ...box, rx: Math.min(3, thick / 3), class: `core-part level-${Math.min(part.level, LEVEL_COLORS - 1)}`, tabindex: 0, role: "img", "aria-label": `part ${part.name}, level ${part.level}, ${short(part.samples)} samples` });
    this.interactive(rect, () =>
      this.tell(part.name, [`partition ${partition.name}`, `level ${part.level}`, `${count(part.samples)} samples`, `${count(part.series)} series`, `${bytes(part.bytes)}${part.samples > 0 ? `, ${(part.bytes / part.samples).toFixed(2)} bytes a sample` : ""}`, `${formatTime(part.minTime)} – ${formatTime(part.maxTime)}`]),
    );
    return svg("g", {}, rect, svg("rect", { ...box, class: "core-varves", "aria-hidden": "true" }));
  }

  private interactive(shape: SVGElement, tell: () => void): void {
    shape.addEventListener("mouseenter", tell);
    shape.addEventListener("focus", tell);
  }

  private tell(name: string, facts: string[]): void {
    fill(this.detail, h("b", { class: "mono" }, name), facts.map((fact) => h("span", {}, fact)));
  }

  private listParts(status: StorageStatus): void {
    const open = new Set([...this.tables.querySelectorAll<HTMLDetailsElement>("details[open]")].map((each) => each.dataset["name"]));
    const heads = ["part", "level", "samples", "series", "size", "bytes/sample", "from", "to"].map((text, i) => h("th", { scope: "col", class: i > 0 && i < 6 ? "number" : "" }, text));
    const row = (part: Part): HTMLElement => {
      const cells = [String(part.level), count(part.samples), count(part.series), bytes(part.bytes), part.samples > 0 ? (part.bytes / part.samples).toFixed(2) : "–"];
      return h("tr", {}, h("td", { class: "mono" }, part.name), cells.map((text) => h("td", { class: "number" }, text)), h("td", { class: "nowrap" }, formatTime(part.minTime)), h("td", { class: "nowrap" }, formatTime(part.maxTime)));
    };
    const section = (partition: Partition): HTMLElement => {
      const size = partition.parts.reduce((sum, part) => sum + part.bytes, 0), samples = partition.parts.reduce((sum, part) => sum + part.samples, 0);
      const summary = h("summary", {}, h("b", {}, partition.name), h("span", { class: "quiet" }, `${plural(partition.parts.length, "part")}, ${short(samples)} samples, ${bytes(size)}`));
      const details = h("details", { "data-name": partition.name, class: "partition", open: open.has(partition.name) }, summary, h("div", { class: "table-scroll" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, heads.map((head) => head.cloneNode(true)))), h("tbody", {}, partition.parts.map(row)))));
      return details;
    };
    fill(this.tables, status.partitions.length > 0 && card("Partitions", [...status.partitions].sort((a, b) => b.minTime - a.minTime).map(section)));
  }

  destroy(): void {
    this.stop();
  }
}
