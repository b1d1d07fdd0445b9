// The legend of a graph: what all series have in common once, then a row each with last, least, greatest, mean.
// The greatest last values come first; a click on a column's head sorts by it. A click isolates a series (again: shows all), ctrl or shift and click adds or takes away one.
import type { Line } from "./chart";
import { fill, h } from "./dom";
import { labelPair, plural, short, type Labels } from "./format";
import { seriesVar } from "./theme";

const ROWS_MAX = 100;

const COLUMNS = ["name", "last", "min", "max", "mean"] as const;
const byText = new Intl.Collator("en", { numeric: true }).compare;

interface Figures {
  last: number;
  min: number;
  max: number;
  mean: number;
}

function figures(values: (number | null)[]): Figures | null {
  let n = 0, sum = 0, min = Infinity, max = -Infinity, last = NaN;
  for (const v of values) {
    if (v === null) continue;
    n++;
    sum += v;
    if (v < min) min = v;
    if (v > max) max = v;
    last = v;
  }
  return n > 0 ? { last, min, max, mean: sum / n } : null;
}

export interface LegendOptions {
  changed: () => void;
  hover: (index: number | null) => void;
}

export class Legend {
  readonly dom = h("div", { class: "legend" });
  private lines: Line[] = [];
  private rows: HTMLElement[] = [];
  private filter = "";
  private all = false;
  private readonly common = h("div", { class: "common mono" });
  private figures: (Figures | null)[] = [];
  private sortBy: keyof Figures | "name" = "last";
  private down = true;
  private readonly heads: HTMLElement[];
  private readonly search = h("input", { type: "search", class: "input small", placeholder: "Filter series", "aria-label": "Filter series" });
  private readonly body = h("tbody");

  constructor(private readonly options: LegendOptions) {
    this.search.addEventListener("input", () => {
      this.filter = this.search.value.toLowerCase();
      this.show();
    });
    this.heads = COLUMNS.map((column) => h("th", { scope: "col", class: column === "name" ? "" : "number" }, h("button", { type: "button", class: "sort", on: { click: () => this.sort(column) } }, column)));
    fill(
      this.dom,
      h("div", { class: "legend-head" }, this.common, h("span", { class: "grow" }), this.search),
      h("div", { class: "legend-scroll" }, h("table", { class: "legend-table" }, h("thead", {}, h("tr", {}, this.heads)), this.body)),
    );
  }

  // New figures; what the reader has typed and focused stays.
  update(lines: Line[], common: Labels): void {
    const focused = this.rows.findIndex((row) => row?.contains(document.activeElement));
    this.lines = lines;
    const pairs = Object.entries(common).map(([name, value]) => (name === "__name__" ? value : labelPair(name, value)));
    fill(this.common, pairs.length > 0 && [h("span", { class: "quiet" }, "all: "), pairs.join("  ")]);
    this.heads[0]!.firstChild!.textContent = plural(lines.length, "series", "series");
    this.figures = lines.map((line) => figures(line.values));
    this.search.hidden = lines.length <= 8 && this.filter === "";
    this.show();
    if (focused >= 0) this.rows[focused]?.querySelector("button")?.focus();
  }

  private matching(): number[] {
    const found: number[] = [];
    this.lines.forEach((line, i) => {
      if (line.name.toLowerCase().includes(this.filter)) found.push(i);
    });
    return found.sort((a, b) => this.compare(a, b));
  }

  private compare(a: number, b: number): number {
    const by = this.sortBy;
    const order = by === "name" ? byText(this.lines[a]!.name, this.lines[b]!.name) : (this.figures[a]?.[by] ?? -Infinity) - (this.figures[b]?.[by] ?? -Infinity);
    return (this.down ? -order : order) || a - b;
  }

  private sort(column: keyof Figures | "name"): void {
    this.down = this.sortBy === column ? !this.down : column !== "name";
    this.sortBy = column;
    this.show();
  }

  private show(): void {
    const found = this.matching();
    const visible = this.all ? found : found.slice(0, ROWS_MAX);
    this.rows = [];
    this.heads.forEach((head, i) => head.setAttribute("aria-sort", COLUMNS[i] !== this.sortBy ? "none" : this.down ? "descending" : "ascending"));
    const rows = visible.map((i) => this.row(i));
    const more = found.length - visible.length;
    const moreRow = more > 0 && h("tr", {}, h("td", { colspan: 5 }, h("button", { type: "button", class: "link", on: { click: () => ((this.all = true), this.show()) } }, `${plural(more, "more series", "more series")}`)));
    fill(this.body, rows.length > 0 ? rows : h("tr", {}, h("td", { colspan: 5, class: "quiet" }, "No series has that in its name.")), moreRow);
  }

  private row(i: number): HTMLElement {
    const line = this.lines[i]!;
    const f = this.figures[i];
    const cell = (v: number | undefined): HTMLElement => h("td", { class: "number" }, v === undefined ? "–" : short(v));
    const name = h(
      "button",
      { type: "button", class: "legend-name mono", "aria-pressed": String(line.shown), title: line.name, on: { click: (event) => this.toggle(i, event.ctrlKey || event.metaKey || event.shiftKey) } },
      h("i", { class: "swatch", style: { "--swatch": seriesVar(line.slot) } }),
      h("span", {}, line.name),
    );
    const row = h("tr", { class: line.shown ? "" : "off", on: { mouseenter: () => this.options.hover(i), mouseleave: () => this.options.hover(null) } }, h("td", {}, name), cell(f?.last), cell(f?.min), cell(f?.max), cell(f?.mean));
    name.addEventListener("focus", () => this.options.hover(i));
    name.addEventListener("blur", () => this.options.hover(null));
    this.rows[i] = row;
    return row;
  }

  private toggle(i: number, one: boolean): void {
    const { lines } = this;
    const line = lines[i]!;
    const alone = line.shown && lines.every((each) => each === line || !each.shown);
    if (one) line.shown = !line.shown;
    else for (const each of lines) each.shown = alone || each === line;
    lines.forEach((each, k) => {
      this.rows[k]?.classList.toggle("off", !each.shown);
      this.rows[k]?.querySelector("button")?.setAttribute("aria-pressed", String(each.shown));
    });
    this.options.changed();
  }

  // The line under the pointer in the graph.
  highlight(i: number | null): void {
    this.rows.forEach((row, k) => row.classList.toggle("lit", k === i));
  }
}
