// The result of an instant query as a table: a column a label that differs, sorted by a click on its head.
import type { Histogram, QueryData, Series } from "./api";
import { button, fill, h } from "./dom";
import { commonLabels, labelPair, plural, seriesName, short } from "./format";
import { formatTime } from "./time";

const ROWS = 500;
const COLUMNS_MAX = 8;

function histogramText(hist: Histogram): HTMLElement {
  const buckets = (hist.buckets ?? []).map(([kind, low, high, n]) => `${kind === 0 || kind === 3 ? (kind === 3 ? "[" : "(") : kind === 1 ? "[" : "("}${low}, ${high}${kind === 0 || kind === 3 ? "]" : ")"}: ${n}`);
  return h("details", {}, h("summary", {}, `histogram: count ${hist.count}, sum ${hist.sum}`), h("pre", { class: "mono" }, buckets.join("\n")));
}

function valueCell(series: Series): (HTMLElement | string)[] {
  const out: (HTMLElement | string)[] = [];
  if (series.value) out.push(h("span", { title: `at ${formatTime(series.value[0] * 1000)}` }, series.value[1]));
  if (series.histogram) out.push(histogramText(series.histogram[1]));
  if (series.values) out.push(h("pre", { class: "mono samples" }, series.values.map(([t, v]) => `${v}  @ ${formatTime(t * 1000)}`).join("\n")));
  for (const [t, hist] of series.histograms ?? []) out.push(h("div", {}, histogramText(hist), h("span", { class: "quiet" }, ` @ ${formatTime(t * 1000)}`)));
  return out;
}

function numberOf(series: Series): number {
  const text = series.value?.[1] ?? series.values?.at(-1)?.[1] ?? series.histogram?.[1].count ?? "NaN";
  return Number(text.replace("Inf", "Infinity"));
}

// Numbers in labels sort as numbers.
const byText = new Intl.Collator("en", { numeric: true }).compare;

interface Column {
  title: string;
  text: (series: Series) => string;
  cell?: (series: Series) => HTMLElement;
}

// A column for each label that differs; when these are many, one for the whole name.
function columnsOf(result: Series[], common: ReadonlySet<string>): Column[] {
  const names = new Set<string>();
  for (const series of result) for (const name of Object.keys(series.metric)) if (!common.has(name)) names.add(name);
  if (names.size > COLUMNS_MAX || result.length < 2 || names.size === 0) {
    return [{ title: "series", text: (series) => seriesName(series.metric, result.length < 2 ? new Set() : common) }];
  }
  const sorted = [...names].sort((a, b) => (a === "__name__" ? -1 : b === "__name__" ? 1 : a < b ? -1 : 1));
  return sorted.map((name) => ({ title: name === "__name__" ? "metric" : name, text: (series) => series.metric[name] ?? "" }));
}

function csv(result: Series[], columns: Column[]): string {
  const cell = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = result.map((series) => [...columns.map((column) => column.text(series)), series.value?.[1] ?? ""].map(cell).join(","));
  return [[...columns.map((column) => cell(column.title)), "value"].join(","), ...rows].join("\n") + "\n";
}

function vectorTable(result: Series[]): HTMLElement {
  const common = commonLabels(result.map((series) => series.metric));
  const columns = columnsOf(result, common);
  const body = h("tbody");
  const heads: HTMLElement[] = [];
  let sortBy = -1, down = true, limit = ROWS, filter = "";

  const rows = (): Series[] => {
    const wanted = filter ? result.filter((series) => columns.some((column) => column.text(series).toLowerCase().includes(filter))) : [...result];
    if (sortBy < 0) return wanted;
    const column = columns[sortBy];
    const order = column ? (a: Series, b: Series) => byText(column.text(a), column.text(b)) : (a: Series, b: Series) => numberOf(a) - numberOf(b);
    return wanted.sort((a, b) => (down ? -order(a, b) : order(a, b)));
  };
  const show = (): void => {
    const all = rows();
    const shown = all.slice(0, limit).map((series) => h("tr", {}, columns.map((column) => h("td", { class: "mono" }, column.text(series))), h("td", { class: "number value" }, valueCell(series))));
    const rest = all.length - shown.length;
    fill(body, shown, rest > 0 && h("tr", {}, h("td", { colspan: columns.length + 1 }, h("button", { type: "button", class: "link", on: { click: () => ((limit += 5000), show()) } }, plural(rest, "more row")))));
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== (sortBy < columns.length ? sortBy : columns.length) || sortBy < 0 ? "none" : down ? "descending" : "ascending"));
  };
  const head = (title: string, i: number): HTMLElement => {
    const sort = (): void => {
      down = sortBy === i ? !down : i === columns.length;
      sortBy = i;
      show();
    };
    const cell = h("th", { scope: "col", class: i === columns.length ? "number" : "" }, h("button", { type: "button", class: "sort", on: { click: sort } }, title));
    heads.push(cell);
    return cell;
  };
  const search = h("input", { type: "search", class: "input small", placeholder: "Filter rows", "aria-label": "Filter rows" });
  search.addEventListener("input", () => ((filter = search.value.toLowerCase()), show()));
  const copy = button({ text: "Copy as CSV", class: "button quiet-button", click: () => void navigator.clipboard?.writeText(csv(rows(), columns)) });
  const pairs = [...common].map((name) => (name === "__name__" ? result[0]!.metric[name]! : labelPair(name, result[0]!.metric[name]!)));
  const table = h("table", { class: "table" }, h("thead", {}, h("tr", {}, [...columns.map((column) => column.title), "value"].map(head))), body);
  show();
  return h(
    "div",
    { class: "result-table" },
    h("div", { class: "legend-head" }, pairs.length > 0 && h("div", { class: "common mono" }, h("span", { class: "quiet" }, "all: "), pairs.join("  ")), h("span", { class: "grow" }), result.length > 8 && search, copy),
    h("div", { class: "table-scroll" }, table),
  );
}

export function resultTable(data: QueryData): HTMLElement {
  if (data.resultType === "scalar" || data.resultType === "string") {
    const [t, text] = data.result;
    return h("div", { class: "scalar" }, h("span", { class: "quiet" }, `${data.resultType} at ${formatTime(t * 1000)}`), h("b", { class: "mono" }, text), data.resultType === "scalar" && h("span", { class: "quiet" }, short(Number(text), 6)));
  }
  return vectorTable(data.result as Series[]);
}
