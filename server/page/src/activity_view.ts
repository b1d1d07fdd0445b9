// What the server is being asked: queries that run now, with a button that ends them, and those that cost most.
import { getBody, post, type ActiveQuery, type TopQueries, type TopQuery } from "./api";
import { announce, button, fill, h } from "./dom";
import { count, plural, seconds } from "./format";
import { openQuery } from "./nav";
import { formatTime, roughly } from "./time";
import { bars, card, excuse, repeat, type BarRow, type Mounted } from "./view";

type Order = "sum" | "avg" | "count";

const ORDERS: [Order, string][] = [["sum", "Most time in all"], ["avg", "Slowest"], ["count", "Most often"]];

export class ActivityView implements Mounted {
  readonly dom: HTMLElement;
  private readonly active = h("div");
  private readonly top = h("div");
  private order: Order = "sum";
  private tops: TopQueries | null = null;
  private readonly stops: (() => void)[];

  constructor() {
    this.dom = h("div", { class: "activity" }, h("h1", { class: "unseen" }, "Queries"), card("Running now", this.active), card("What queries cost", this.top));
    this.stops = [repeat(2000, () => this.loadActive()), repeat(10e3, () => this.loadTop())];
  }

  private async loadActive(): Promise<void> {
    try {
      const body = await getBody<{ data: ActiveQuery[] }>("api/v1/status/active_queries");
      this.showActive(body.data);
    } catch (error) {
      fill(this.active, excuse(error, "list of running queries"));
    }
  }

  private showActive(queries: ActiveQuery[]): void {
    if (queries.length === 0) {
      fill(this.active, h("p", { class: "quiet pad" }, "Nothing runs at the moment. This looks every two seconds."));
      return;
    }
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset["id"] : undefined;
    const row = (query: ActiveQuery): HTMLElement => {
      const cancel = button({ icon: "stop", text: "Cancel", class: "button danger", title: `Cancel ${query.query}`, click: () => void this.cancel(query) });
      cancel.dataset["id"] = query.id;
      const range = query.end > query.start ? `${roughly(query.end - query.start)} to ${formatTime(query.end)}, step ${roughly(query.step)}` : `at ${formatTime(query.end)}`;
      return h("tr", {}, h("td", { class: "number nowrap" }, query.duration), h("td", {}, h("code", { class: "query-text" }, query.query), h("div", { class: "quiet" }, `${range}, from ${query.remote_addr}`)), h("td", { class: "number" }, cancel));
    };
    const heads = ([["running", "number"], ["query", ""], ["", ""]] as const).map(([text, cls]) => h("th", { scope: "col", class: cls }, text));
    fill(this.active, h("div", { class: "table-scroll" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, queries.map(row)))));
    if (focused) this.active.querySelector<HTMLElement>(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  private async cancel(query: ActiveQuery): Promise<void> {
    try {
      await post(`api/v1/status/active_queries/cancel?id=${encodeURIComponent(query.id)}`, {});
      announce("canceled");
    } catch {
      announce("it had ended already");
    }
    await this.loadActive();
  }

  private async loadTop(): Promise<void> {
    try {
      this.tops = await getBody<TopQueries>("api/v1/status/top_queries", { topN: 20, maxLifetime: "1h" });
      this.showTop();
    } catch (error) {
      fill(this.top, excuse(error, "statistics of queries"));
    }
  }

  private showTop(): void {
    const tops = this.tops;
    if (!tops) return;
    const choose = (order: Order): void => {
      this.order = order;
      this.showTop();
    };
    const choices = h("div", { class: "joined pad-bottom", role: "group", "aria-label": "Order" }, ORDERS.map(([order, text]) => button({ text, pressed: order === this.order, click: () => choose(order) })));
    const list = { sum: tops.topBySumDuration, avg: tops.topByAvgDuration, count: tops.topByCount }[this.order];
    const focused = this.top.contains(document.activeElement);
    fill(this.top, choices, bars(list.map((query) => this.row(query)), "No query has ended in the last hour."), list.length > 0 && h("p", { class: "quiet small-text pad" }, "Queries of the last hour, by their text and range."));
    if (focused) choices.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
  }

  private row(query: TopQuery): BarRow {
    const value = { sum: query.sumDurationSeconds, avg: query.avgDurationSeconds, count: query.count }[this.order] ?? 0;
    const figures = { sum: `${seconds(value)} in ${plural(query.count, "run")}`, avg: `${seconds(value)} each, ${plural(query.count, "run")}`, count: `${count(query.count)} runs` }[this.order];
    const range = query.timeRangeSeconds > 0 ? ` over ${roughly(query.timeRangeSeconds * 1000)}` : "";
    return { name: query.query, value, text: figures + range, title: `${query.query}\nopen it`, click: () => openQuery(query.query) };
  }

  destroy(): void {
    for (const stop of this.stops) stop();
  }
}
