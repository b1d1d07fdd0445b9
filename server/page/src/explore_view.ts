// The metrics explorer: who has the series, what is new, what is never asked for; and down from a metric over its
// labels to their values.
import { ApiError, get, getBody, metadataOf, type Named, type NameStats, type Params, type QueryData, type TsdbStatus } from "./api";
import { button, fill, h } from "./dom";
import { count, plural, selector, seriesName, short, type Labels } from "./format";
import { go, openQuery } from "./nav";
import { state } from "./state";
import { formatTime, roughly } from "./time";
import { bars, card, excuse, figure, type Mounted } from "./view";

const LISTED = 300;
const SHOWN = 12;
const SERIES_SHOWN = 30;
const UNUSED_MAX = 1000;

// A server that runs for less than an hour knows only what began since it started.
function begun(status: TsdbStatus): string {
  const since = status.seriesCreatedSince;
  return since !== undefined && Date.now() - since < 3595e3 ? `New since the start at ${formatTime(since).slice(11, 16)}` : "New in the last hour";
}

export class ExploreView implements Mounted {
  readonly dom: HTMLElement;
  private readonly search = h("input", { type: "search", class: "input", placeholder: "Find a metric", "aria-label": "Find a metric" });
  private readonly list = h("ul", { class: "names" });
  private readonly listed = h("p", { class: "quiet small-text" });
  private readonly main = h("div", { class: "explore-main" });
  private readonly control = new AbortController();
  private names: string[] = [];
  private counts = new Map<string, number>();

  constructor() {
    this.search.addEventListener("input", () => this.showNames());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.list.querySelector("button")?.focus();
      if (event.key === "Enter") this.list.querySelector("button")?.click();
    });
    this.list.addEventListener("keydown", (event) => this.listKey(event));
    this.dom = h("div", { class: "explore" }, h("aside", { class: "card explore-side", "aria-label": "Metrics" }, this.search, this.listed, this.list), this.main);
    void this.loadNames();
    if (state.metric) void this.showMetric(state.metric, state.matchers);
    else void this.showOverview();
  }

  focus(): void {
    this.search.focus();
  }

  private get<T>(path: string, params: Params): Promise<T> {
    return get<T>(path, params, this.control.signal).then((answer) => answer.data);
  }

  // ---- the list of names

  private async loadNames(): Promise<void> {
    try {
      this.names = await this.get<string[]>("api/v1/label/__name__/values", {});
      this.showNames();
    } catch (error) {
      if (!this.control.signal.aborted) fill(this.list, h("li", {}, excuse(error, "list of metrics")));
    }
  }

  private showNames(): void {
    const wanted = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.names.filter((name) => wanted.every((word) => name.toLowerCase().includes(word)));
    const item = (name: string): HTMLElement => {
      const n = this.counts.get(name);
      return h("li", {}, h("button", { type: "button", class: "name mono", title: name, "aria-current": name === state.metric ? "true" : undefined, on: { click: () => go("explore", name) } }, h("span", {}, name), n !== undefined && h("small", {}, short(n))));
    };
    fill(this.list, found.slice(0, LISTED).map(item));
    this.listed.textContent = found.length > LISTED ? `${count(found.length)} metrics, the first ${LISTED} are listed` : this.names.length === 0 ? "no metrics yet" : plural(found.length, "metric");
  }

  private listKey(event: KeyboardEvent): void {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const items = [...this.list.querySelectorAll("button")];
    const next = items[items.indexOf(event.target as HTMLButtonElement) + by];
    (next ?? this.search).focus();
  }

  // ---- the overview

  private async showOverview(): Promise<void> {
    const figures = h("div", { class: "figures-row" }), fresh = h("div"), unused = h("div"), most = h("div", { class: "inline" });
    fill(this.main, h("h1", { class: "unseen" }, "Metrics"), figures, h("div", { class: "grid" }, most, fresh, unused));
    await Promise.all([this.loadStatus(figures, fresh, most), this.loadUnused(unused)]);
  }

  private async loadStatus(figures: HTMLElement, fresh: HTMLElement, most: HTMLElement): Promise<void> {
    try {
      const status = await this.get<TsdbStatus>("api/v1/status/tsdb", { limit: 1000 });
      for (const { name, value } of status.seriesCountByMetricName) this.counts.set(name, value);
      this.showNames();
      this.showFigures(figures, status);
      const toMetric = (rows: Named[]): HTMLElement =>
        bars(rows.slice(0, SHOWN).map(({ name, value }) => ({ name, value, text: count(value), click: () => go("explore", name) })), "Nothing.");
      const plain = (rows: Named[], nothing = "Nothing."): HTMLElement => bars(rows.slice(0, SHOWN).map(({ name, value }) => ({ name, value, text: count(value) })), nothing);
      const created = status.seriesCreatedLastHourByMetricName;
      fill(fresh, created && card(begun(status), created.length > 0 ? toMetric(created) : h("p", { class: "quiet pad" }, "No series began.")));
      fill(most, card("Metrics with most series", toMetric(status.seriesCountByMetricName)), card("Labels with most values", plain(status.labelValueCountByLabelName)), card("Pairs with most series", plain(status.seriesCountByLabelValuePair)));
      if (status.memoryInBytesByLabelName) most.append(card("Labels by memory", bars(status.memoryInBytesByLabelName.slice(0, SHOWN).map(({ name, value }) => ({ name, value, text: short(value) + "B" })), "Nothing.")));
    } catch (error) {
      if (!this.control.signal.aborted) fill(most, card("Cardinality", excuse(error, "figures of cardinality")));
    }
  }

  private showFigures(into: HTMLElement, status: TsdbStatus): void {
    const head = status.headStats;
    const total = status.totalSeries ?? head?.numSeries;
    const created = status.seriesCreatedLastHourByMetricName?.reduce((sum, each) => sum + each.value, 0);
    fill(
      into,
      total !== undefined && figure("series", count(total)),
      figure("metrics", count(this.names.length || status.seriesCountByMetricName.length)),
      created !== undefined && figure(begun(status).toLowerCase(), count(created)),
      head && figure("label pairs", count(head.numLabelPairs)),
      head && head.minTime > 0 && head.maxTime > head.minTime && figure("span", roughly(head.maxTime - head.minTime), `since ${formatTime(head.minTime)}`),
    );
  }

  private async loadUnused(into: HTMLElement): Promise<void> {
    try {
      const stats = await getBody<NameStats>("api/v1/status/metric_names_stats", { le: 0, limit: UNUSED_MAX });
      const rows = stats.records.map((record) => h("li", {}, h("button", { type: "button", class: "name mono", title: record.metricName, on: { click: () => go("explore", record.metricName) } }, h("span", {}, record.metricName))));
      const since = stats.statsCollectedSince > 0 ? ` since ${formatTime(stats.statsCollectedSince * 1000)}` : "";
      fill(into, card("Never queried", h("p", { class: "quiet card-note" }, rows.length > 0 ? `${plural(rows.length, "metric")}${rows.length === UNUSED_MAX ? " or more" : ""} that no query asked for${since}.` : `Every metric was asked for${since}.`), h("ul", { class: "tall-list" }, rows)));
    } catch (error) {
      if (!this.control.signal.aborted) fill(into, card("Never queried", excuse(error, "statistics of use")));
    }
  }

  // ---- one metric

  private async showMetric(metric: string, matchers: [string, string][]): Promise<void> {
    const select = selector(metric, matchers);
    const about = h("p", { class: "about" }), figures = h("div", { class: "figures-row" }), labels = h("div", { class: "grid masonry" }), series = h("div");
    const crumb = (text: string, kept: [string, string][], last: boolean): HTMLElement => (last ? h("span", { class: "mono", "aria-current": "page" }, text) : h("button", { type: "button", class: "link mono", on: { click: () => go("explore", metric, kept) } }, text));
    const trail = [crumb(metric, [], matchers.length === 0), ...matchers.map(([name, value], i) => crumb(`${name}=${JSON.stringify(value)}`, matchers.slice(0, i + 1), i === matchers.length - 1))];
    const query = button({ icon: "play", text: "Query", class: "button primary", click: () => void this.open(metric, select) });
    fill(this.main, h("nav", { class: "crumbs", "aria-label": "Path" }, h("button", { type: "button", class: "link", on: { click: () => go("explore") } }, "All metrics"), trail, h("span", { class: "grow" }), query), h("h1", { class: "unseen" }, metric), about, figures, labels, series);
    await Promise.all([this.describe(metric, about), this.loadLabels(metric, select, matchers, labels, figures), this.loadSeries(select, series)]);
  }

  private async open(metric: string, select: string): Promise<void> {
    const known = await metadataOf(metric);
    const counter = known ? known.type === "counter" : metric.endsWith("_total");
    openQuery(counter ? `rate(${select}[5m])` : select);
  }

  private async describe(metric: string, into: HTMLElement): Promise<void> {
    const known = await metadataOf(metric);
    if (known) fill(into, h("span", { class: "kind" }, known.type), " ", known.help);
  }

  private async loadLabels(metric: string, select: string, matchers: [string, string][], into: HTMLElement, figures: HTMLElement): Promise<void> {
    try {
      const names = await this.get<string[]>("api/v1/labels", { "match[]": select });
      const fixed = new Set(["__name__", ...matchers.map(([name]) => name)]);
      const free = names.filter((name) => !fixed.has(name));
      const found = await Promise.all(free.slice(0, 40).map(async (name) => ({ name, values: await this.valuesOf(select, name) })));
      found.sort((a, b) => b.values.length - a.values.length || (a.name < b.name ? -1 : 1));
      const total = found.length > 0 ? Math.max(...found.map(({ values }) => values.reduce((sum, each) => sum + each.value, 0))) : undefined;
      fill(figures, total !== undefined && figure("series", count(total)), figure("labels", count(free.length)));
      const one = ({ name, values }: { name: string; values: Named[] }): HTMLElement =>
        card(`${name}`, h("p", { class: "quiet card-note" }, plural(values.length, "value")), bars(values.slice(0, SHOWN).map((each) => ({ name: each.name, value: each.value, text: count(each.value), click: () => go("explore", metric, [...matchers, [name, each.name]]) })), "No values."));
      fill(into, found.map(one));
    } catch (error) {
      if (!this.control.signal.aborted) fill(into, card("Labels", excuse(error, "labels")));
    }
  }

  // The values of a label with their series; by a query where the server does not count them itself.
  private async valuesOf(select: string, label: string): Promise<Named[]> {
    try {
      const status = await this.get<TsdbStatus>("api/v1/status/tsdb", { "match[]": select, focusLabel: label, limit: 1000 });
      if (status.seriesCountByFocusLabelValue) return status.seriesCountByFocusLabelValue;
    } catch (error) {
      if (!(error instanceof ApiError && error.missing)) throw error;
    }
    const by = /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) ? label : JSON.stringify(label);
    const data = await this.get<QueryData>("api/v1/query", { query: `sort_desc(count by (${by}) (last_over_time(${select}[1h])))` });
    return data.resultType === "vector" ? data.result.map((each) => ({ name: each.metric[label] ?? "", value: Number(each.value?.[1] ?? 0) })) : [];
  }

  private async loadSeries(select: string, into: HTMLElement): Promise<void> {
    try {
      const found = await this.get<Labels[]>("api/v1/series", { "match[]": select, limit: SERIES_SHOWN + 1 });
      const rows = found.slice(0, SERIES_SHOWN).map((labels) => h("li", { class: "mono" }, h("button", { type: "button", class: "link", on: { click: () => void this.open(labels["__name__"] ?? "", seriesName(labels)) } }, seriesName(labels))));
      fill(into, card(found.length > SERIES_SHOWN ? `Series, the first ${SERIES_SHOWN}` : "Series", h("ul", { class: "plain-list" }, rows)));
    } catch (error) {
      if (!this.control.signal.aborted) fill(into, card("Series", excuse(error, "series")));
    }
  }

  destroy(): void {
    this.control.abort();
  }
}
