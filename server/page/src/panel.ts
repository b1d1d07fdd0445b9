// One query: its editor, and its result as graph, table or plan.
import { ApiError, post, type Envelope, type Params, type QueryData, type Series } from "./api";
import { Chart, DRAWN_MAX, gridOf, valuesOn, type Line } from "./chart";
import { announce, button, fill, h, icon } from "./dom";
import { Editor, placeOf, wordAt, type ErrorPlace } from "./editor";
import { explainTree } from "./explain";
import { bytes, commonLabels, count, plural, seconds, seriesName, type Labels } from "./format";
import { historyButton, remember } from "./history";
import { Legend } from "./legend";
import type { PanelState, Tab } from "./state";
import { resultTable } from "./table";
import { formatDuration, niceStep, type Span } from "./time";

export interface PanelHost {
  span: () => Span;
  step: () => number | null;
  changed: (how: "push" | "replace") => void;
  zoom: (span: Span) => void;
  move: (by: number) => void;
  scale: (by: number) => void;
  reorder: (panel: Panel, by: number) => void;
  remove: (panel: Panel) => void;
  letter: (panel: Panel) => string;
}

const TAB_NAMES: [Tab, string][] = [["graph", "Graph"], ["table", "Table"], ["explain", "Explain"]];

export class Panel {
  readonly dom: HTMLElement;
  private readonly editor: Editor;
  private readonly chart: Chart;
  private readonly letter = h("span", { class: "letter", "aria-hidden": "true" });
  private readonly tabs: HTMLElement[];
  private readonly stats = h("div", { class: "stats" });
  private readonly notes = h("div", { class: "notes" });
  private readonly body = h("div", { class: "panel-body" });
  private readonly stackButton: HTMLButtonElement;
  private readonly hideButton: HTMLButtonElement;
  private running: AbortController | null = null;
  private lines: Line[] = [];
  private readonly legend: Legend;
  private readonly cut = h("div");
  private readonly graph: HTMLElement; // chart and legend; stays as it is while results change

  constructor(
    readonly state: PanelState,
    private readonly host: PanelHost,
  ) {
    this.editor = new Editor({
      text: state.expr,
      label: "PromQL expression",
      run: () => this.runFromEditor(),
      changed: (text) => {
        state.expr = text;
        host.changed("replace");
      },
    });
    this.chart = new Chart({ zoom: host.zoom, move: host.move, scale: host.scale, highlight: (i) => this.legend.highlight(i) });
    this.legend = new Legend({ changed: () => this.chart.redraw(), hover: (i) => this.chart.focusLine(i) });
    this.graph = h("div", {}, this.cut, this.chart.dom, this.legend.dom);
    this.tabs = TAB_NAMES.map(([tab, name]) => h("button", { type: "button", role: "tab", class: "tab", on: { click: () => this.choose(tab), keydown: (event) => this.tabKey(event) } }, name));
    this.stackButton = button({ text: "Stacked", class: "button quiet-button", pressed: state.stacked, click: () => this.toggleStack() });
    this.hideButton = button({ icon: "eye", title: "Hide this query", pressed: state.hidden, click: () => this.toggleHidden() });
    this.dom = h("section", { class: "panel card" }, this.head(), h("div", { class: "panel-result" }, h("div", { class: "tabs-row" }, h("div", { role: "tablist", class: "tabs", "aria-label": "Result as" }, this.tabs), this.stackButton, h("span", { class: "grow" }), this.stats), this.notes, this.body));
    this.reflect();
    this.showEmpty();
  }

  private head(): HTMLElement {
    return h(
      "div",
      { class: "panel-head" },
      this.letter,
      this.editor.dom,
      h(
        "div",
        { class: "panel-tools" },
        historyButton((expr) => this.setText(expr, true)),
        button({ icon: "format", title: "Format the expression", click: () => void this.format() }),
        this.hideButton,
        button({ icon: "up", title: "Move up", class: "button bare order", click: () => this.host.reorder(this, -1) }),
        button({ icon: "down", title: "Move down", class: "button bare order", click: () => this.host.reorder(this, 1) }),
        button({ icon: "close", title: "Remove this query", click: () => this.host.remove(this) }),
      ),
      button({ icon: "play", text: "Run", class: "button primary run", click: () => this.runFromEditor() }),
    );
  }

  // Letter, tab and hidden as the state says.
  reflect(): void {
    const letter = this.host.letter(this);
    this.letter.textContent = letter;
    this.dom.setAttribute("aria-label", `Query ${letter}`);
    this.dom.classList.toggle("collapsed", this.state.hidden);
    this.hideButton.replaceChildren(icon(this.state.hidden ? "hidden" : "eye"));
    this.hideButton.title = this.state.hidden ? "Show this query" : "Hide this query";
    this.hideButton.setAttribute("aria-label", this.hideButton.title);
    this.hideButton.setAttribute("aria-pressed", String(this.state.hidden));
    this.stackButton.hidden = this.state.tab !== "graph";
    this.tabs.forEach((tab, i) => {
      const on = TAB_NAMES[i]![0] === this.state.tab;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
    });
  }

  focus(): void {
    this.editor.focus();
  }

  setText(expr: string, run: boolean): void {
    this.editor.text = expr;
    this.editor.focus();
    if (run) this.runFromEditor();
  }

  private choose(tab: Tab): void {
    this.state.tab = tab;
    this.reflect();
    this.host.changed("push");
    this.run();
  }

  private tabKey(event: KeyboardEvent): void {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const at = TAB_NAMES.findIndex(([tab]) => tab === this.state.tab);
    const next = (at + by + TAB_NAMES.length) % TAB_NAMES.length;
    this.choose(TAB_NAMES[next]![0]);
    this.tabs[next]!.focus();
  }

  private toggleStack(): void {
    this.state.stacked = !this.state.stacked;
    this.stackButton.setAttribute("aria-pressed", String(this.state.stacked));
    this.host.changed("replace");
    this.run();
  }

  private toggleHidden(): void {
    this.state.hidden = !this.state.hidden;
    this.reflect();
    this.host.changed("replace");
    if (!this.state.hidden) this.run();
  }

  private async format(): Promise<void> {
    try {
      const { data } = await post<string>("api/v1/format_query", { query: this.state.expr });
      this.editor.text = data;
    } catch (error) {
      this.fail(error);
    }
  }

  private runFromEditor(): void {
    if (this.state.expr.trim()) remember(this.state.expr.trim());
    this.host.changed("push");
    this.run();
  }

  // ---- running

  private stepFor(span: Span): number {
    const points = Math.min(700, Math.max(120, (this.body.clientWidth || 800) / 2));
    return this.host.step() ?? niceStep(span.to - span.from, points);
  }

  // Times on multiples of the step, so that a refresh does not make the lines shiver.
  private grid(): { span: Span; step: number } {
    const span = this.host.span();
    const step = this.stepFor(span);
    return { span: { from: Math.floor(span.from / step) * step, to: Math.floor(span.to / step) * step }, step };
  }

  run(quiet = false): void {
    this.running?.abort();
    this.running = null;
    if (this.state.hidden) return;
    if (!this.state.expr.trim()) return this.showEmpty();
    const control = new AbortController();
    this.running = control;
    this.dom.classList.add("busy");
    this.dom.classList.toggle("quiet-busy", quiet);
    void this.ask(control.signal)
      .catch((error: unknown) => {
        if (!control.signal.aborted) this.fail(error);
      })
      .finally(() => {
        if (this.running === control) this.dom.classList.remove("busy", "quiet-busy");
      });
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const query = this.state.expr;
    if (this.state.tab === "table") {
      const answer = await post<QueryData>("api/v1/query", { query, time: this.host.span().to / 1000, stats: "1" }, signal);
      if (!signal.aborted) this.showTable(answer);
      return;
    }
    const { span, step } = this.grid();
    const params: Params = { query, start: span.from / 1000, end: span.to / 1000, step: step / 1000, stats: "1" };
    if (this.state.tab === "explain") params["explain"] = "1";
    const answer = await post<QueryData>("api/v1/query_range", params, signal);
    if (signal.aborted) return;
    if (this.state.tab === "explain") this.showExplain(answer);
    else this.showGraph(answer, span, step);
  }

  // ---- showing

  private begin(answer: Envelope<QueryData>, extra: string): void {
    this.editor.markError(null);
    const { stats, resultType, result } = answer.data;
    const n = resultType === "vector" || resultType === "matrix" ? result.length : 1;
    const took = stats?.timings?.execTotalTime ?? answer.elapsed / 1000;
    const read = stats?.samples?.totalQueryableSamples;
    const parts = [seconds(took), plural(n, "series", "series"), read === undefined ? "" : `${count(read)} samples`, extra, bytes(answer.bytes)].filter(Boolean);
    fill(this.stats, parts.map((text) => h("span", {}, text)));
    const note = (kind: string, text: string): HTMLElement => h("p", { class: `note ${kind}` }, icon("warn"), h("span", {}, text));
    fill(this.notes, (answer.warnings ?? []).map((text) => note("warning", text)), (answer.infos ?? []).map((text) => note("info", text)));
    announce(`${this.host.letter(this)}: ${plural(n, "series", "series")} in ${seconds(took)}`);
  }

  private put(...children: (HTMLElement | false)[]): void {
    fill(this.body, ...children);
  }

  private showEmpty(): void {
    fill(this.stats);
    fill(this.notes);
    this.put(h("div", { class: "hint-empty quiet" }, "Enter runs the query; shift and enter make a new line; alt and arrow up brings back what you ran before."));
  }

  private showNothing(): void {
    this.put(h("div", { class: "nothing" }, h("b", {}, "No series"), h("p", { class: "quiet" }, "The query is right, but nothing matches it in this range. A longer range or fewer matchers may help.")));
  }

  private showTable(answer: Envelope<QueryData>): void {
    this.begin(answer, "");
    if (answer.data.resultType !== "scalar" && answer.data.resultType !== "string" && answer.data.result.length === 0) this.showNothing();
    else this.put(resultTable(answer.data));
  }

  private showExplain(answer: Envelope<QueryData>): void {
    this.begin(answer, "");
    if (answer.data.explain) this.put(explainTree(answer.data.explain, answer.data.stats));
    else this.put(h("div", { class: "nothing" }, h("b", {}, "No plan"), h("p", { class: "quiet" }, "This server's answer has none.")));
  }

  private showGraph(answer: Envelope<QueryData>, span: Span, step: number): void {
    this.begin(answer, `step ${formatDuration(step)}`);
    const result = answer.data.result as Series[];
    if (result.length === 0) return this.showNothing();
    const floats = result.filter((series) => series.values);
    if (floats.length === 0) {
      this.put(h("div", { class: "nothing" }, h("b", {}, "Histograms"), h("p", { class: "quiet" }, "These are native histograms. histogram_quantile(0.9, …) draws a line of them; the table shows their buckets.")));
      return;
    }
    this.draw(floats, span, step);
  }

  private draw(result: Series[], span: Span, step: number): void {
    const drawn = result.slice(0, DRAWN_MAX);
    const common = commonLabels(drawn.map((series) => series.metric));
    if (common.size > 0 && drawn.every((series) => Object.keys(series.metric).every((name) => common.has(name)))) common.clear();
    const times = gridOf(span, step);
    const shows = this.graph.isConnected;
    const was = new Map(this.lines.map((line) => [line.name, line.shown]));
    this.lines = drawn.map((series, slot): Line => {
      const name = seriesName(series.metric, common);
      return { name, slot, shown: true, values: valuesOn(times, step, series) };
    });
    if (shows && this.lines.every((line) => was.has(line.name))) for (const line of this.lines) line.shown = was.get(line.name)!;
    const all: Labels = {};
    for (const name of common) all[name] = drawn[0]!.metric[name]!;
    const cut = result.length > drawn.length && h("p", { class: "note info" }, icon("warn"), h("span", {}, `${count(result.length)} series are too many to draw: these are the first ${DRAWN_MAX}. topk() or sum by () says more.`));
    fill(this.cut, cut);
    if (!shows) this.put(this.graph);
    this.legend.update(this.lines, all);
    this.chart.show(span, times, this.lines, this.state.stacked);
  }

  private fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const place = error instanceof ApiError ? placeOf(message) : null;
    this.editor.markError(place);
    fill(this.stats);
    fill(this.notes);
    announce(`Error: ${message}`);
    this.put(h("div", { class: "failure", role: "alert" }, h("p", {}, h("b", {}, error instanceof ApiError && error.type ? error.type.replaceAll("_", " ") : "error"), " ", message.replace(/^\d+:\d+: /, "")), place !== null && this.excerpt(place)));
  }

  // The line with the error, its column marked.
  private excerpt(place: ErrorPlace): HTMLElement {
    const text = this.state.expr;
    const { from, to } = wordAt(text, place);
    const start = text.lastIndexOf("\n", from - 1) + 1;
    const end = text.indexOf("\n", to);
    return h("pre", { class: "mono excerpt" }, h("span", { class: "quiet" }, `${place.line}:${place.column}  `), text.slice(start, from), h("mark", {}, text.slice(from, to) || " "), text.slice(to, end < 0 ? undefined : end));
  }

  destroy(): void {
    this.running?.abort();
    this.chart.destroy();
    this.editor.destroy();
  }
}
